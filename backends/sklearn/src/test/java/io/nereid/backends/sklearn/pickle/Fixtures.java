// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.backends.sklearn.EstimatorFactory;
import io.nereid.backends.sklearn.Models;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;

/** The models made by {@code make_fixtures.py}, with the results of scikit-learn. Stateless. */
public final class Fixtures {
    public static final List<String> VERSIONS = List.of("0.24.2", "1.1.3", "1.9.1");
    public static final String NEW = "1.9.1";

    private Fixtures() {}

    public static Path path(String version, String file) {
        URL url = Objects.requireNonNull(Fixtures.class.getResource("/models/" + version + "/" + file), file);
        try {
            return Path.of(url.toURI());
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    public static JsonNode expected(String version) {
        try (InputStream in = Fixtures.class.getResourceAsStream("/models/" + version + "/expected.json")) {
            return new ObjectMapper().readTree(in);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public static Estimator load(String version, String file) {
        return new EstimatorFactory(Models.boosters()).build(ModelFile.read(path(version, file), MemoryLimit.ofHeap()));
    }

    public static double number(JsonNode cell) {
        if (cell.isNull() || cell.asText().equals("NaN")) {
            return Double.NaN;
        }
        return cell.isBoolean()
                ? (cell.asBoolean() ? 1 : 0)
                : cell.isNumber()
                        ? cell.asDouble()
                        : cell.asText().startsWith("-") ? Double.NEGATIVE_INFINITY : Double.POSITIVE_INFINITY;
    }

    public static DataTable table(JsonNode rows) {
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
        return new DataTable(rows.size(), columns, values, texts);
    }
}
