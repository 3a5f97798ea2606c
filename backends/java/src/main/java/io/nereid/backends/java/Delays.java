// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelConfig;
import java.time.Duration;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * How slow a test model is asked to be. Immutable.
 *
 * @param creation of loading
 * @param run of every run
 * @param byInstance whether instance {@code i} takes {@code i} times as long, though the first as long as the second
 */
record Delays(Duration creation, Duration run, boolean byInstance) {
    private static final long MAX_MILLIS = Duration.ofHours(1).toMillis();

    static Delays read(ModelConfig config) {
        return new Delays(
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
            // Refused below.
        }
        throw ServingException.invalidArgument(
                "model '" + config.name() + "' has " + key + " '" + text + "' (expected: " + unit + " from 0 to " + most
                        + ")",
                "correct the parameter");
    }

    /** The delay of one instance's runs. */
    Duration of(int instance) {
        return byInstance ? run.multipliedBy(Math.max(1, instance)) : run;
    }

    /** Whether runs take next to no time. */
    boolean none() {
        return run.isZero();
    }

    /** Waits as long as loading is to take. */
    void create(String model) {
        if (!creation.isZero()) {
            await(new Semaphore(0), creation, "loading model '" + model + "' was interrupted");
        }
    }

    /** Waits; a permit ends the waiting. */
    static void await(Semaphore cancelled, Duration delay, String interrupted) {
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
