// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Runs what somebody else has written, and says what its failures mean to clients. Thread-safe: fixed. */
final class Faults {
    private static final Logger LOG = LoggerFactory.getLogger(Faults.class);

    private final ClassLoader loader;
    private final String modelName;

    /** @param loader of the code that is run */
    Faults(ClassLoader loader, String modelName) {
        this.loader = loader;
        this.modelName = modelName;
    }

    /** Code of somebody else. */
    @FunctionalInterface
    interface Step<T> {
        T run() throws Exception;
    }

    /**
     * Runs a step with its own context class loader.
     *
     * @throws ServingException for whatever it throws
     */
    <T> T step(String name, Step<T> step) {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(loader);
        try {
            return step.run();
        } catch (Exception | LinkageError | StackOverflowError e) {
            throw failure(name, e);
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    private ServingException failure(String step, Throwable e) {
        if (e instanceof ServingException told) {
            return told;
        }
        if (e instanceof IllegalArgumentException) {
            return ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT, e.getMessage() == null ? step + " refused it" : e.getMessage(), e);
        }
        LOG.warn("{} of the transformer of model '{}' failed", step, modelName, e);
        String why = e.getClass().getSimpleName() + (e.getMessage() == null ? "" : ": " + e.getMessage());
        return ServingException.wrap(
                ErrorCode.INTERNAL, step + " of the transformer of model '" + modelName + "' failed: " + why, e);
    }
}
