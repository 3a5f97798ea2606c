// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.mlflow;

import io.nereid.backend.Conversion;
import io.nereid.backend.ModelConverter;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Converts MLflow's model directories: for one that is a Python function only, makes a {@code model.py} for the backend
 * {@code python}, which calls {@code mlflow.pyfunc}. Thread-safe: has no state.
 */
public final class MlflowConverter implements ModelConverter {
    private static final String TEMPLATE = "python_function.py";

    /** For {@link java.util.ServiceLoader}. */
    public MlflowConverter() {}

    @Override
    public boolean recognises(Path file) {
        return Files.isRegularFile(directory(file).resolve(MlModel.FILE));
    }

    private static Path directory(Path file) {
        Path path = file.toAbsolutePath().normalize();
        Path parent = path.getParent();
        return path.endsWith(MlModel.FILE) && parent != null ? parent : path;
    }

    @Override
    public Conversion convert(Path file) {
        Path directory = directory(file);
        MlModel model = MlModel.read(directory);
        try {
            Flavor flavor = Flavor.of(model, directory, String.valueOf(directory.getFileName()));
            return new Conversion(
                    "an MLflow model of the flavor " + flavor.name() + ", which is served as it is, by the backend "
                            + flavor.backend(),
                    Map.of(),
                    List.of("nereid serve " + directory));
        } catch (ServingException e) {
            if (!model.flavors().containsKey("python_function")) {
                throw e;
            }
        }
        return new Conversion(
                "an MLflow model that is a Python function",
                Map.of("model.py", template(model)),
                List.of(
                        "# model.py loads it with mlflow.pyfunc, which runs its code: go on only if you trust it, and with mlflow and"
                                + " the packages in requirements.txt installed",
                        "nereid serve " + directory));
    }

    /** The columns of the signature as Python tuples: name, Triton's type, whether it is the only input, a matrix. */
    private static byte[] template(MlModel model) {
        List<String> inputs = new ArrayList<>();
        MlModel.Schema schema = model.inputs();
        boolean columns = schema != null && schema.columns() && schema.named();
        if (schema != null) {
            for (MlModel.Item item : schema.items()) {
                String name = item.name().isEmpty() ? "input-" + inputs.size() : item.name();
                inputs.add("(" + quoted(name) + ", \"TYPE_" + (item.type() == DataType.BYTES ? "STRING" : item.type())
                        + "\")");
            }
        }
        if (inputs.isEmpty()) {
            inputs.add("(\"input-0\", \"TYPE_FP64\")");
        }
        try (InputStream in = MlflowConverter.class.getResourceAsStream(TEMPLATE)) {
            if (in == null) {
                throw new IllegalStateException("the resource " + TEMPLATE + " is missing");
            }
            return new String(in.readAllBytes(), StandardCharsets.UTF_8)
                    .replace("@INPUTS@", String.join(", ", inputs) + ",")
                    .replace("@COLUMNS@", columns ? "True" : "False")
                    .getBytes(StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    /** A string of Python: letters, digits and common signs as they are, everything else escaped. */
    private static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c >= ' ' && c < 127 && c != '"' && c != '\\') {
                quoted.append(c);
            } else {
                quoted.append(String.format(java.util.Locale.ROOT, "\\u%04x", (int) c));
            }
        }
        return quoted.append('"').toString();
    }
}
