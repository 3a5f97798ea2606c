// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded;

import io.nereid.observe.RequestTrace;
import org.jspecify.annotations.Nullable;

/**
 * Starts a trace for each prediction, such as {@link io.nereid.embedded.opentelemetry.OpenTelemetryTraces}. Thread-safe;
 * called on the thread that asks for the prediction, so that its context is known.
 */
@FunctionalInterface
public interface PredictionTraces {
    /** The trace of a prediction that begins, which is ended with it; null for none. */
    @Nullable RequestTrace start(String model);
}
