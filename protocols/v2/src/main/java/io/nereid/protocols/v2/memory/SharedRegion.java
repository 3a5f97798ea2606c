// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.memory;

import io.nereid.device.SharedDeviceMemory;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Tensor;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/** A region of memory that a client has registered by a name. Reference-counted. Thread-safe. */
public sealed interface SharedRegion {
    /** The name that the client gave it. */
    String name();

    /** The size of the region. */
    long byteSize();

    /** Adds a reference, to be dropped by {@link #release}. */
    void retain();

    /** Drops a reference; the last one gives the memory back. */
    void release();

    /** Writes the bytes of a tensor, for which there is enough space at the offset. */
    void write(long offset, Tensor tensor);

    /** The thread on which the region is written to, as that blocks; null for any thread. */
    @Nullable Executor thread();

    /**
     * System shared memory: an object of POSIX, mapped.
     *
     * @param key the name of the shared memory object
     * @param offset where the region begins in the object
     * @param memory the mapped region
     */
    record SystemRegion(String name, String key, long offset, long byteSize, MemoryRegion memory)
            implements SharedRegion {
        @Override
        public void retain() {
            memory.retain();
        }

        @Override
        public void release() {
            memory.release();
        }

        @Override
        public void write(long at, Tensor tensor) {
            memory.setBytes((int) at, tensor.region(), tensor.offset(), tensor.byteLength());
        }

        @Override
        public @Nullable Executor thread() {
            return null;
        }
    }

    /**
     * CUDA shared memory: memory of a GPU that the client has allocated.
     *
     * @param device the number of the GPU
     * @param memory the memory, which may be longer than the region
     */
    record CudaRegion(String name, int device, long byteSize, SharedDeviceMemory memory) implements SharedRegion {
        @Override
        public void retain() {
            memory.retain();
        }

        @Override
        public void release() {
            memory.release();
        }

        @Override
        public void write(long at, Tensor tensor) {
            memory.write(at, tensor.region(), tensor.offset(), tensor.byteLength());
        }

        @Override
        public Executor thread() {
            return memory.thread();
        }
    }
}
