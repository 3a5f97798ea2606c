// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.recording.RequestLogger;
import io.nereid.spi.ModelRef;
import io.nereid.spi.management.LoadOptions;
import io.nereid.spi.management.ModelControl;
import io.nereid.spi.management.ModelListChange;
import io.nereid.spi.management.ModelListEntry;
import io.nereid.spi.management.ModelStatus;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * The model control API as clients may use it: tritonserver's rule for its model control modes, and no files outside of
 * those that the operator has allowed. Thread-safe.
 */
final class ClientModelControl implements ModelControl {
    private final ModelControl control;
    private final RequestLogger recorder;
    private final boolean explicitLoads;
    /** Repositories that did not exist at the start and have not been seen since. */
    private final List<Path> missing;

    /**
     * Creates the API.
     *
     * @param explicitLoads whether clients may load and unload models
     * @param missing repositories without which the server is not ready
     */
    ClientModelControl(ModelControl control, RequestLogger recorder, boolean explicitLoads, List<Path> missing) {
        this.control = control;
        this.recorder = recorder;
        this.explicitLoads = explicitLoads;
        this.missing = new CopyOnWriteArrayList<>(missing);
    }

    @Override
    public boolean live() {
        return control.live();
    }

    @Override
    public boolean ready() {
        if (!missing.isEmpty()) {
            missing.removeIf(Files::exists);
        }
        return missing.isEmpty() && control.ready();
    }

    @Override
    public boolean ready(ModelRef model) {
        return control.ready(model);
    }

    @Override
    public List<ModelStatus> index() {
        return control.index();
    }

    @Override
    public CompletionStage<Void> load(String model, LoadOptions options) {
        return explicitLoads ? control.load(model, options) : notAllowed();
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        return explicitLoads ? control.unload(model, dependents) : notAllowed();
    }

    /** tritonserver's error, in its words, which it uses in the mode {@code none} as well. */
    private static CompletionStage<Void> notAllowed() {
        return CompletableFuture.failedStage(ServingException.of(
                ErrorCode.UNAVAILABLE, "explicit model load / unload is not allowed if polling is enabled"));
    }

    @Override
    public CompletionStage<List<ModelListChange>> configure(List<ModelListEntry> models, boolean dryRun) {
        try {
            recorder.checkFromClient(models);
        } catch (ServingException e) {
            return CompletableFuture.failedStage(e);
        }
        return control.configure(models, dryRun);
    }
}
