// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.model;

import io.nereid.backend.Backend;
import io.nereid.backend.ModelLocation;
import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.InputFile;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;

/** The model file of a backend: it is refused, or loaded and run. Confined to one thread. */
public final class BackendTarget implements FuzzTarget {
    private final Backend backend;
    private final InputFile file;
    private final ModelLocation location;
    private final ModelConfig config;

    /** @param name the name of the file that the backend reads */
    public BackendTarget(Backend backend, String name) {
        this.backend = backend;
        this.file = new InputFile(name);
        this.location = ModelRuns.location(file);
        this.config =
                ModelConfig.builder("m").backend(backend.name()).modelFile(name).build();
    }

    @Override
    public void read(byte[] input) throws IOException {
        file.with(input);
        ModelRuns.run(backend.load(location, config, ModelRuns.context()));
    }
}
