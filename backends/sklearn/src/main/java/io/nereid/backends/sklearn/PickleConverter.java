// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.backend.Conversion;
import io.nereid.backend.ModelConverter;
import io.nereid.backends.sklearn.boosting.BoosterFile;
import io.nereid.backends.sklearn.boosting.Boosters;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.pickle.MemoryLimit;
import io.nereid.backends.sklearn.pickle.ModelFile;
import io.nereid.backends.sklearn.pickle.PyObject;
import io.nereid.backends.sklearn.pickle.PythonValues;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Converts pickle, joblib and skops files: the native model is taken out of a pickled booster; of what this server does
 * not compute, a {@code model.py} for the backend {@code python} is made. Thread-safe: has no state.
 */
public final class PickleConverter implements ModelConverter {
    private static final List<String> ENDINGS = List.of(".pkl", ".pickle", ".joblib", ".skops");
    private static final String TEMPLATE = "pickled_model.py";

    /** For {@link java.util.ServiceLoader}. */
    public PickleConverter() {}

    @Override
    public boolean recognises(Path file) {
        String name = String.valueOf(file.getFileName()).toLowerCase(Locale.ROOT);
        return Files.isRegularFile(file) && ENDINGS.stream().anyMatch(name::endsWith);
    }

    @Override
    public Conversion convert(Path file) {
        Object value;
        try {
            value = ModelFile.read(file, MemoryLimit.ofHeap());
        } catch (ServingException e) {
            return python(file, String.valueOf(e.getMessage()));
        }
        if (value instanceof PyObject object && Boosters.has(object)) {
            BoosterFile booster = Boosters.nativeFile(new EstimatorAttributes(object));
            Path target = file.resolveSibling(booster.fileName());
            return new Conversion(
                    "a pickle of a " + booster.origin()
                            + ", which is served as it is, with its labels, and whose native model"
                            + " is served by the backend " + booster.backend(),
                    Map.of(booster.fileName(), booster.content()),
                    List.of("nereid serve " + file, "nereid serve " + target));
        }
        // Parts of other libraries are left to their backends: everything before the first of them is supported.
        AtomicBoolean others = new AtomicBoolean();
        try {
            new EstimatorFactory(booster -> {
                        others.set(true);
                        throw ServingException.of(ErrorCode.UNIMPLEMENTED, "a part of another library");
                    })
                    .build(value);
        } catch (ServingException e) {
            if (!others.get()) {
                return python(file, String.valueOf(e.getMessage()));
            }
        }
        return new Conversion(
                "a scikit-learn model, " + PythonValues.kind(value) + ", which is served as it is",
                Map.of(),
                List.of("nereid serve " + file));
    }

    private static Conversion python(Path file, String why) {
        Path directory = file.toAbsolutePath().normalize().getParent();
        return new Conversion(
                "a pickle that this server does not compute itself: " + why,
                Map.of("model.py", template(String.valueOf(file.getFileName()))),
                List.of(
                        "# model.py loads the file in Python, which runs its code: go on only if you trust the file, and with its"
                                + " packages installed",
                        "nereid serve " + directory));
    }

    private static byte[] template(String file) {
        try (InputStream in = PickleConverter.class.getResourceAsStream(TEMPLATE)) {
            if (in == null) {
                throw new IllegalStateException("the resource " + TEMPLATE + " is missing");
            }
            String text = new String(in.readAllBytes(), StandardCharsets.UTF_8);
            return text.replace("@FILE@", file.replace("\\", "\\\\").replace("\"", "\\\""))
                    .getBytes(StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }
}
