// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.observe.Observability;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelControl;
import java.nio.file.Path;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;

/** What every handler needs. Thread-safe: its parts are, and workbenches are one for each thread. */
final class CodecContext {
    final InferenceEngine engine;
    final ModelControl control;
    final Observability observation;
    final Clock clock;
    final V2Options options;
    final SharedMemory sharedMemory;
    private final Executor codecPool;
    private final ThreadLocal<Workbench> workbenches;

    CodecContext(
            InferenceEngine engine,
            ModelControl control,
            Observability observation,
            Clock clock,
            Executor codecPool,
            V2Options options,
            Path sharedMemoryDirectory) {
        this.engine = engine;
        this.control = control;
        this.observation = observation;
        this.clock = clock;
        this.codecPool = codecPool;
        this.options = options;
        this.sharedMemory = new SharedMemory(sharedMemoryDirectory, options.sharedMemoryKeys());
        this.workbenches = ThreadLocal.withInitial(() -> new Workbench(options, this.sharedMemory));
    }

    /** The calling thread's own. */
    Workbench workbench() {
        return workbenches.get();
    }

    /** Whether work on this many bytes must leave the calling thread. */
    boolean mustOffload(long bytes) {
        return bytes > options.offloadBytes() && !workbench().onCodecPool;
    }

    /** Runs {@code task} on the codec pool; it must not throw. */
    void offload(Runnable task) {
        try {
            codecPool.execute(() -> {
                Workbench bench = workbench();
                boolean before = bench.onCodecPool;
                bench.onCodecPool = true;
                try {
                    task.run();
                } finally {
                    bench.onCodecPool = before;
                }
            });
        } catch (RejectedExecutionException e) {
            throw ServingException.of(ErrorCode.UNAVAILABLE, "the server is shutting down", "retry at another server");
        }
    }
}
