// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import java.time.Duration;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * Artificial delays of a test model, from its configuration. Immutable.
 *
 * @param creation delay of the load
 * @param run delay of every run
 * @param byInstance whether the delay of instance {@code i} is multiplied by {@code i}, but at least by 1
 */
public record SimulatedDelays(Duration creation, Duration run, boolean byInstance) {
    private static final long MAX_MILLIS = Duration.ofHours(1).toMillis();

    public static SimulatedDelays read(ModelConfig config) {
        return new SimulatedDelays(
                Duration.ofSeconds(number(config, "creation_delay_sec", "seconds", MAX_MILLIS / 1000)),
                Duration.ofMillis(number(config, "execute_delay_ms", "milliseconds", MAX_MILLIS)),
                number(config, "instance_wise_delay_multiplier", "a whole number", Integer.MAX_VALUE) > 0);
    }

    private static long number(ModelConfig config, String key, String unit, long most) {
        String text = config.parameters().getOrDefault(key, "0");
        try {
            long value = Long.parseLong(text.strip());
            if (value >= 0 && value <= most) {
                return value;
            }
        } catch (NumberFormatException e) {
            // Reported below.
        }
        throw ServingException.invalidArgument(
                "model '" + config.name() + "' has " + key + " '" + text + "' (expected: " + unit + " from 0 to " + most
                        + ")",
                "correct the parameter");
    }

    /** Returns the delay of the runs of one instance. */
    Duration of(int instance) {
        return byInstance ? run.multipliedBy(Math.max(1, instance)) : run;
    }

    /** Returns whether runs have no delay. */
    boolean none() {
        return run.isZero();
    }

    /** Waits for the delay of the load. */
    public void create(String model) {
        if (!creation.isZero()) {
            await(new Semaphore(0), creation, "loading model '" + model + "' was interrupted");
        }
    }

    /** Waits for a delay; a permit of {@code cancelled} ends the wait with CANCELLED. */
    public static void await(Semaphore cancelled, Duration delay, String interrupted) {
        try {
            if (cancelled.tryAcquire(delay.toNanos(), TimeUnit.NANOSECONDS)) {
                throw ServingException.of(ErrorCode.CANCELLED, "the request was cancelled");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw ServingException.of(ErrorCode.CANCELLED, interrupted);
        }
    }
}
