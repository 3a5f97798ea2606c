// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.mlflow;

import io.nereid.backend.Conversion;
import io.nereid.backend.ModelConverter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * Says what runs a model directory of MLflow, which is served as it is, and what a Python function needs. Thread-safe:
 * has no state.
 */
public final class MlflowConverter implements ModelConverter {
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
        Flavor flavor = Flavor.of(model, directory, String.valueOf(directory.getFileName()), "");
        String what = "an MLflow model of the flavor " + flavor.name() + ", which is served as it is, by the backend "
                + flavor.backend();
        if (!flavor.function()) {
            return new Conversion(what, Map.of(), List.of("nereid serve " + directory));
        }
        Path requirements = directory.resolve("requirements.txt");
        return new Conversion(
                what,
                Map.of(),
                List.of(
                        "# it is run by mlflow.pyfunc, which runs its code: go on only if you trust it",
                        "python3 -m pip install "
                                + (Files.isRegularFile(requirements) ? "-r " + requirements : "mlflow"),
                        "nereid serve " + directory));
    }
}
