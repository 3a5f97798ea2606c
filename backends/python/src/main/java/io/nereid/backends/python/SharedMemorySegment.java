// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A mapped file that the server and a worker share. The worker counts as one user, and so does every tensor in it. When
 * the last user releases it, the file is truncated, which frees its pages at once; Java unmaps the file only when the
 * buffer is garbage-collected. The memory must not be accessed after that. Thread-safe.
 */
final class SharedMemorySegment {
    private final int number;
    private final FileChannel file;
    private final ByteBuffer memory;
    private final AtomicInteger users = new AtomicInteger(1);

    /** @throws IOException when the file cannot be mapped; the channel is closed then */
    SharedMemorySegment(int number, FileChannel file, int size) throws IOException {
        this.number = number;
        this.file = file;
        try {
            this.memory = file.map(MapMode.READ_WRITE, 0, size).order(ByteOrder.LITTLE_ENDIAN);
        } catch (IOException | RuntimeException e) {
            file.close();
            throw e;
        }
    }

    int number() {
        return number;
    }

    int size() {
        return memory.capacity();
    }

    /** A new view of a range. */
    ByteBuffer slice(int at, int length) {
        return memory.slice(at, length).order(ByteOrder.LITTLE_ENDIAN);
    }

    void retain() {
        users.incrementAndGet();
    }

    void release() {
        if (users.decrementAndGet() == 0) {
            try (file) {
                file.truncate(0);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }
}
