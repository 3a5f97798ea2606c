// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import io.nereid.backends.python.SharedMemoryArena.Chunk;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The shared-memory files that the worker created, and response tensors over them without a copy. A worker describes an
 * output by its location: in a file of its own (negative number), or in a chunk of the server's
 * {@link SharedMemoryArena} (0 and above) when the model returns memory of an input.
 *
 * <p>When the last reference to such a tensor is closed, the chunk must go back to its allocator. The server's own is
 * released directly. The worker's is queued and sent in the next {@code exec} frame, or in a frame of its own once many
 * chunks or bytes are queued. Thread-safe: tensors are closed on any thread.
 */
final class WorkerSegments {
    private static final int FLUSH_COUNT = 64;
    private static final long FLUSH_BYTES = 8 << 20;

    private final SharedMemoryArena arena;
    private final Runnable flush;
    private final Map<Integer, SharedMemorySegment> segments = new ConcurrentHashMap<>();
    private final ConcurrentLinkedQueue<int[]> freed = new ConcurrentLinkedQueue<>();
    private final AtomicInteger freedCount = new AtomicInteger();
    private final AtomicLong freedBytes = new AtomicLong();

    /** @param flush sends the queued chunks; called on the thread that closed a tensor, so it must not block */
    WorkerSegments(SharedMemoryArena arena, Runnable flush) {
        this.arena = arena;
        this.flush = flush;
    }

    /** Maps a file that the worker has created, and deletes its name: the memory ends with the last mapping. */
    void map(int number, Path path, int size) {
        try {
            segments.put(
                    number,
                    new SharedMemorySegment(
                            number, FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE), size));
            Files.delete(path);
        } catch (IOException e) {
            throw ServingException.internal("the shared-memory file " + path + " cannot be mapped", e);
        }
    }

    /**
     * Makes tensors, owned by the caller, from descriptions {@code [name, type, shape, file, offset, skip, length]}.
     * The offset names a chunk, and the tensor begins {@code skip} bytes after it.
     *
     * @throws ServingException INTERNAL for an invalid description; all memory is released then
     */
    List<Tensor> tensors(List<?> descriptions) {
        List<Tensor> tensors = new ArrayList<>(descriptions.size());
        for (int i = 0; i < descriptions.size(); i++) {
            try {
                tensors.add(tensor((List<?>) descriptions.get(i)));
            } catch (RuntimeException e) {
                Tensor.closeAll(tensors);
                discard(descriptions.subList(i + 1, descriptions.size()));
                throw ServingException.from(e);
            }
        }
        return tensors;
    }

    /** Frees the memory of tensors that are not used, such as those of a response to a request that has ended. */
    void discard(List<?> descriptions) {
        for (Object d : descriptions) {
            List<?> t = (List<?>) d;
            if (number(t, 6) > 0 && number(t, 3) < 0) {
                free(number(t, 3), number(t, 4), number(t, 6));
            }
        }
    }

    private static int number(List<?> description, int i) {
        return Math.toIntExact((Long) description.get(i));
    }

    private Tensor tensor(List<?> t) {
        String name = (String) t.get(0);
        DataType type = DataType.ofWireName((String) t.get(1));
        List<?> dims = (List<?>) t.get(2);
        int number = number(t, 3);
        int at = number(t, 4);
        int length = number(t, 6);
        if (type == null) {
            throw ServingException.of(ErrorCode.INTERNAL, "output '" + name + "' is of type " + t.get(1));
        }
        long[] shape = new long[dims.size()];
        for (int i = 0; i < shape.length; i++) {
            shape[i] = (Long) dims.get(i);
        }
        Shape of = Shape.of(shape);
        if (type.isFixedSize() && of.byteSize(type) != length) {
            throw ServingException.of(
                    ErrorCode.INTERNAL, "output '" + name + "' " + type + of + " has " + length + " bytes");
        }
        if (length == 0) {
            return Tensor.over(name, type, of, MemoryRegion.empty(), 0, 0);
        }
        return Tensor.over(name, type, of, region(number, at, number(t, 5), length), 0, length);
    }

    private MemoryRegion region(int number, int at, int skip, int length) {
        if (number >= 0) {
            Chunk chunk = arena.at(number, at);
            if (chunk == null || !chunk.retain()) {
                throw ServingException.of(ErrorCode.INTERNAL, "a response uses the memory of a request that has ended");
            }
            try {
                return MemoryRegion.wrap(chunk.slice(skip, length), chunk::release);
            } catch (RuntimeException e) {
                chunk.release();
                throw e;
            }
        }
        SharedMemorySegment segment = segments.get(number);
        if (segment == null) {
            throw ServingException.of(ErrorCode.INTERNAL, "a response uses an unknown shared-memory file");
        }
        ByteBuffer memory = segment.slice(at, length);
        segment.retain();
        return MemoryRegion.wrap(memory, () -> {
            free(number, at, length);
            segment.release();
        });
    }

    private void free(int number, int at, int length) {
        // Flush exactly when a limit is crossed, so that concurrent calls do not all flush.
        freed.add(new int[] {number, at});
        long bytes = freedBytes.addAndGet(length);
        if (freedCount.incrementAndGet() == FLUSH_COUNT || (bytes >= FLUSH_BYTES && bytes - length < FLUSH_BYTES)) {
            flush.run();
        }
    }

    /** Removes and returns the queued chunks, each as file number and offset. */
    List<int[]> takeFreed() {
        if (freed.isEmpty()) {
            return List.of();
        }
        freedCount.set(0);
        freedBytes.set(0);
        List<int[]> taken = new ArrayList<>();
        for (int[] place = freed.poll(); place != null; place = freed.poll()) {
            taken.add(place);
        }
        return taken;
    }

    /** The worker has ended. Its files stay mapped as long as tensors use them. */
    void close() {
        for (Integer number : List.copyOf(segments.keySet())) {
            SharedMemorySegment segment = segments.remove(number);
            if (segment != null) {
                segment.release();
            }
        }
    }
}
