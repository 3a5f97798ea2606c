// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.codec;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.device.Devices;
import io.nereid.observe.Observability;
import io.nereid.protocols.v2.memory.SharedMemoryManager;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.management.ModelControl;
import java.nio.file.Path;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * The dependencies that all handlers share: engine, options, shared memory, codec pool. Thread-safe: its parts are, and
 * each thread has buffers of its own.
 */
public final class CodecContext {
    public final InferenceEngine engine;
    public final ModelControl control;
    public final Observability observation;
    public final Clock clock;
    public final V2Options options;
    public final SharedMemoryManager sharedMemory;
    private final Executor codecPool;
    private final ThreadLocal<CodecBuffers> buffersOfThread;

    public CodecContext(
            InferenceEngine engine,
            ModelControl control,
            Observability observation,
            Clock clock,
            Executor codecPool,
            V2Options options,
            Path sharedMemoryDirectory) {
        this(engine, control, observation, clock, codecPool, options, sharedMemoryDirectory, null);
    }

    /** @param devices the GPUs whose memory clients may share; null without one */
    public CodecContext(
            InferenceEngine engine,
            ModelControl control,
            Observability observation,
            Clock clock,
            Executor codecPool,
            V2Options options,
            Path sharedMemoryDirectory,
            @Nullable Devices devices) {
        this.engine = engine;
        this.control = control;
        this.observation = observation;
        this.clock = clock;
        this.codecPool = codecPool;
        this.options = options;
        this.sharedMemory = new SharedMemoryManager(sharedMemoryDirectory, options.sharedMemoryKeys(), devices);
        this.buffersOfThread = ThreadLocal.withInitial(() -> new CodecBuffers(options, this.sharedMemory));
    }

    /** The buffers of the calling thread. */
    public CodecBuffers buffers() {
        return buffersOfThread.get();
    }

    /** Whether work on so many bytes must move to the codec pool, as it would hold up the calling event loop. */
    public boolean mustOffload(long bytes) {
        return bytes > options.offloadBytes() && !buffers().onCodecPool;
    }

    /** Runs {@code task} on the codec pool; it must not throw. */
    public void offload(Runnable task) {
        try {
            codecPool.execute(() -> {
                CodecBuffers buffers = buffers();
                boolean before = buffers.onCodecPool;
                buffers.onCodecPool = true;
                try {
                    task.run();
                } finally {
                    buffers.onCodecPool = before;
                }
            });
        } catch (RejectedExecutionException e) {
            throw rejected(e);
        }
    }

    /** What a client gets whose work an executor does not take, as the server ends; other exceptions stay. */
    public static ServingException rejected(RuntimeException e) {
        return e instanceof RejectedExecutionException
                ? ServingException.of(ErrorCode.UNAVAILABLE, "the server is shutting down", "retry at another server")
                : ServingException.from(e);
    }
}
