// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.unsupported;

import java.nio.file.Path;
import java.util.List;

/** Models of Keras in its own formats, {@code .keras} and HDF5, which only Keras reads. Stateless. */
public final class KerasBackend extends UnsupportedBackend {
    /** For {@link java.util.ServiceLoader}. */
    public KerasBackend() {
        super("keras", List.of(), List.of("model.keras", "model.h5"));
    }

    @Override
    String reason(Path file, FileHeader head) {
        boolean archive = head.text().startsWith("PK");
        boolean hdf = head.text().startsWith("\u0089HDF");
        return (archive
                        ? "is a Keras model in the format .keras"
                        : hdf ? "is an HDF5 file, such as Keras saves" : "has the name of a Keras model")
                + ", which holds Python classes by name; this server serves the SavedModel that Keras exports";
    }

    @Override
    String remedy(Path file) {
        Path path = file.toAbsolutePath().normalize();
        return "python3 -c \"import tensorflow as tf; tf.keras.models.load_model('" + path + "').export('"
                + path.resolveSibling("model.savedmodel") + "')\", then remove '" + file.getFileName()
                + "' and run 'nereid plugins install tensorflow'";
    }
}
