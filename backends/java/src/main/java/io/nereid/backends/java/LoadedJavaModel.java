// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.BackendModel;
import io.nereid.backend.Invocation;
import io.nereid.backend.IoTraits;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelConfig;
import java.time.Duration;

/** A {@link JavaModel} as the engine sees it. Thread-safe; closing it closes the model and then its class loader. */
final class LoadedJavaModel implements BackendModel {
    private static final long MAX_DELAY_MILLIS = Duration.ofHours(1).toMillis();

    private final ModelConfig config;
    private final JavaModel model;
    private final boolean inline;
    private final Duration delay;
    private final Runnable afterClose;

    LoadedJavaModel(
            ModelConfig given, String platform, String backend, JavaModel model, boolean inline, Runnable afterClose) {
        this.model = model;
        this.delay = delay(given);
        this.inline = inline && delay.isZero();
        this.afterClose = afterClose;
        this.config = given.completed(
                given.platform().isEmpty() ? platform : given.platform(),
                backend,
                Math.max(0, given.maxBatchSize()),
                given.inputs(),
                given.outputs(),
                given.batching(),
                Math.max(1, given.instances()));
    }

    private static Duration delay(ModelConfig config) {
        String text = config.parameters().getOrDefault("execute_delay_ms", "0");
        try {
            long millis = Long.parseLong(text.strip());
            if (millis >= 0 && millis <= MAX_DELAY_MILLIS) {
                return Duration.ofMillis(millis);
            }
        } catch (NumberFormatException e) {
            // Refused below.
        }
        throw ServingException.invalidArgument(
                "model '" + config.name() + "' has execute_delay_ms '" + text + "' (expected: milliseconds from 0 to "
                        + MAX_DELAY_MILLIS + ")",
                "correct the parameter");
    }

    @Override
    public ModelConfig config() {
        return config;
    }

    @Override
    public IoTraits traits() {
        return new IoTraits(1, !delay.isZero(), inline);
    }

    @Override
    public Invocation newInvocation() {
        return new JavaInvocation(config.name(), model, delay);
    }

    @Override
    public long memoryBytes() {
        return model instanceof BuiltInModel ? 0 : -1;
    }

    @Override
    public void close() {
        try {
            model.close();
        } catch (Exception e) {
            throw ServingException.internal("model '" + config.name() + "' failed to close: " + e, e);
        } finally {
            afterClose.run();
        }
    }
}
