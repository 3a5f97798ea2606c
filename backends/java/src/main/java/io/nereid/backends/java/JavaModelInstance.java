// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelRequest;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.Tensor;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Semaphore;
import org.jspecify.annotations.Nullable;

/**
 * An instance of a {@link JavaModel}, which executes one run at a time. Not thread-safe, except for {@link #cancel}.
 */
final class JavaModelInstance implements ModelInstance {
    private final String name;
    private final JavaModel model;
    private final Duration delay;
    /** Non-null while a run waits for its delay; a permit ends the wait. */
    private volatile @Nullable Semaphore waiting;

    JavaModelInstance(String name, JavaModel model, Duration delay) {
        this.name = name;
        this.model = model;
        this.delay = delay;
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        if (!delay.isZero()) {
            delay();
        }
        List<Tensor> results;
        try {
            results = model.run(inputs, outputs);
        } catch (ServingException e) {
            throw e;
        } catch (Exception | LinkageError | StackOverflowError e) {
            throw failed(e);
        }
        if (!(model instanceof BuiltInModel)) {
            check(results, outputs);
        }
        return results;
    }

    private void check(List<Tensor> results, List<String> outputs) {
        boolean right = results.size() == outputs.size();
        for (int i = 0; right && i < outputs.size(); i++) {
            right = results.get(i).name().equals(outputs.get(i));
        }
        if (!right) {
            String gave = results.toString();
            Tensor.closeAll(results);
            throw ServingException.of(
                    ErrorCode.INTERNAL,
                    "model '" + name + "' answered " + gave + " (expected: outputs " + outputs + " in this order)");
        }
    }

    @Override
    public void execute(List<ModelRequest> requests) {
        if (!(model instanceof JavaRequestModel own)) {
            throw new UnsupportedOperationException("model '" + name + "' takes batches of tensors");
        }
        if (!delay.isZero()) {
            delay();
        }
        try {
            own.execute(requests);
        } catch (ServingException e) {
            throw e;
        } catch (Exception | LinkageError | StackOverflowError e) {
            throw failed(e);
        }
    }

    private ServingException failed(Throwable e) {
        return ServingException.internal(
                "model '" + name + "' failed: "
                        + (e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage()),
                e);
    }

    private void delay() {
        Semaphore cancelled = new Semaphore(0);
        waiting = cancelled;
        try {
            SimulatedDelays.await(cancelled, delay, "the run was interrupted");
        } finally {
            waiting = null;
        }
    }

    @Override
    public void cancel() {
        Semaphore cancelled = waiting;
        if (cancelled != null) {
            cancelled.release();
        }
    }

    @Override
    public void close() {}
}
