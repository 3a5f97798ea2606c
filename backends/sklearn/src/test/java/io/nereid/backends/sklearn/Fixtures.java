// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;

/** The models made by {@code make_fixtures.py}, with the results of scikit-learn. Stateless. */
final class Fixtures {
    static final List<String> VERSIONS = List.of("0.24.2", "1.1.3", "1.9.1");
    static final String NEW = "1.9.1";

    private Fixtures() {}

    static Path path(String version, String file) {
        URL url = Objects.requireNonNull(Fixtures.class.getResource("/models/" + version + "/" + file), file);
        try {
            return Path.of(url.toURI());
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    static JsonNode expected(String version) {
        try (InputStream in = Fixtures.class.getResourceAsStream("/models/" + version + "/expected.json")) {
            return new ObjectMapper().readTree(in);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static Estimator load(String version, String file) {
        return new Assembly().build(ModelFile.read(path(version, file), MemoryLimit.ofHeap()));
    }

    static double number(JsonNode cell) {
        if (cell.isNull() || cell.asText().equals("NaN")) {
            return Double.NaN;
        }
        return cell.isBoolean()
                ? (cell.asBoolean() ? 1 : 0)
                : cell.isNumber()
                        ? cell.asDouble()
                        : cell.asText().startsWith("-") ? Double.NEGATIVE_INFINITY : Double.POSITIVE_INFINITY;
    }

    static Table table(JsonNode rows) {
        int columns = rows.get(0).size();
        double[] values = new double[rows.size() * columns];
        String[] texts = null;
        for (int i = 0; i < values.length; i++) {
            JsonNode cell = rows.get(i / columns).get(i % columns);
            if (cell.isTextual()) {
                texts = texts == null ? new String[values.length] : texts;
                texts[i] = cell.asText();
                values[i] = Double.NaN;
            } else {
                values[i] = number(cell);
            }
        }
        return new Table(rows.size(), columns, values, texts);
    }
}
