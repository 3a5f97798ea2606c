// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded.server;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelRef;
import io.nereid.spi.management.LoadOptions;
import io.nereid.spi.management.ModelControl;
import io.nereid.spi.management.ModelStatus;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** The models of an application for clients, which may not load or unload them. Thread-safe. */
final class ReadOnlyControl implements ModelControl {
    private final ModelControl control;

    ReadOnlyControl(ModelControl control) {
        this.control = control;
    }

    @Override
    public boolean live() {
        return control.live();
    }

    @Override
    public boolean ready() {
        return control.ready();
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
        return refused();
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        return refused();
    }

    private static CompletionStage<Void> refused() {
        return CompletableFuture.failedStage(ServingException.of(
                ErrorCode.PERMISSION_DENIED,
                "the application that serves these models does not let clients load or unload them"));
    }
}
