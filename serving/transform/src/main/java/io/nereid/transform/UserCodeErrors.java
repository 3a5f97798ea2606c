// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Runs the code of a user's jar and maps its exceptions to error codes for the client. Thread-safe: immutable. */
final class UserCodeErrors {
    private static final Logger LOG = LoggerFactory.getLogger(UserCodeErrors.class);

    private final ClassLoader loader;
    private final String modelName;

    /**
     * @param loader the class loader of the code that is run
     * @param modelName the model's name, for messages
     */
    UserCodeErrors(ClassLoader loader, String modelName) {
        this.loader = loader;
        this.modelName = modelName;
    }

    /** A call of the user's code. */
    @FunctionalInterface
    interface Step<T> {
        T run() throws Exception;
    }

    /**
     * Runs a step with the jar's class loader as the thread's context class loader.
     *
     * @throws ServingException for any exception of the step: INVALID_ARGUMENT for an {@link IllegalArgumentException},
     *     INTERNAL for the rest
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
        if (e instanceof ServingException known) {
            return known;
        }
        if (e instanceof IllegalArgumentException) {
            return ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT,
                    e.getMessage() == null ? step + " rejected the request" : e.getMessage(),
                    e);
        }
        LOG.warn("{} of the transformer of model '{}' failed", step, modelName, e);
        String why = e.getClass().getSimpleName() + (e.getMessage() == null ? "" : ": " + e.getMessage());
        return ServingException.wrap(
                ErrorCode.INTERNAL, step + " of the transformer of model '" + modelName + "' failed: " + why, e);
    }
}
