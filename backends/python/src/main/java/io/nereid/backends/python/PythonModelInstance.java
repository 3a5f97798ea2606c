// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelRequest;
import io.nereid.backends.python.WorkerPool.Lease;
import io.nereid.tensor.Tensor;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One instance of a Python model: a slot of the {@link WorkerPool}, whose worker process is replaced when it dies.
 * Requests that a dead worker has begun fail. Those that it has not begun run on the next worker, or on one of another
 * instance; requests of sequences and of decoupled models are excepted, since their state was in the process.
 *
 * <p>The engine calls {@link #execute} on one thread at a time.
 */
final class PythonModelInstance implements ModelInstance {
    private final PythonModel model;
    private final int index;
    private final WorkerPool.Slot slot;
    private final boolean pinned;
    /** The worker of the run in progress. */
    private volatile @Nullable Worker current;

    PythonModelInstance(PythonModel model, int index, Worker first) {
        this.model = model;
        this.index = index;
        this.slot = model.workers().open(index, first);
        this.pinned = model.plan().decoupled() || model.config().sequence() != null;
    }

    /** Requests fail one by one; see {@link Worker#execute}. */
    @Override
    public void execute(List<ModelRequest> requests) {
        List<ModelRequest> left = requests;
        while (!left.isEmpty()) {
            Lease lease = model.workers().take(slot, pinned);
            boolean completed = false;
            try {
                current = lease.worker();
                left = lease.worker().execute(left);
                completed = lease.worker().alive();
            } finally {
                current = null;
                model.workers().giveBack(lease, completed);
            }
        }
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        throw new UnsupportedOperationException("Python models take requests");
    }

    /**
     * Stops a run that is a coroutine. Other models check themselves whether a request is cancelled
     * ({@code request.is_cancelled()}).
     */
    @Override
    public void cancel() {
        Worker worker = current;
        if (worker != null) {
            worker.stop();
        }
    }

    @Override
    public void close() {
        model.workers().close(slot);
        model.releaseIndex(index);
    }
}
