// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.warmup;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** A warm-up request, whose response is discarded. It owns its inputs. Thread-safe. */
final class WarmupJob implements InferenceJob {
    private final InferenceRequest request;
    private final int rows;
    private final CompletableFuture<Void> done = new CompletableFuture<>();

    /** A job of one row. */
    WarmupJob(InferenceRequest request) {
        this(request, 1);
    }

    WarmupJob(InferenceRequest request, int rows) {
        this.request = request;
        this.rows = rows;
    }

    /** Completes when the job has ended. */
    CompletableFuture<Void> done() {
        return done;
    }

    @Override
    public InferenceRequest request() {
        return request;
    }

    @Override
    public int batchSize() {
        return rows;
    }

    @Override
    public void respond(List<Tensor> outputs, Map<String, Object> parameters) {
        Tensor.closeAll(outputs);
    }

    @Override
    public void complete(List<Tensor> outputs, Map<String, Object> parameters) {
        Tensor.closeAll(outputs);
        request.release();
        done.complete(null);
    }

    @Override
    public void fail(ServingException e) {
        request.release();
        done.completeExceptionally(e);
    }
}
