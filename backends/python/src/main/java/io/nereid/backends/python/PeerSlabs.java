// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import io.nereid.backends.python.Arena.Chunk;
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
 * The files that a worker has made, and tensors made of what lies there, or in ours, without a copy. What is given up goes
 * back to the worker. Thread-safe.
 */
final class PeerSlabs {
    private static final int FLUSH_COUNT = 64;
    private static final long FLUSH_BYTES = 8 << 20;

    private final Arena arena;
    private final Runnable flush;
    private final Map<Integer, Slab> slabs = new ConcurrentHashMap<>();
    private final ConcurrentLinkedQueue<int[]> freed = new ConcurrentLinkedQueue<>();
    private final AtomicInteger freedCount = new AtomicInteger();
    private final AtomicLong freedBytes = new AtomicLong();

    /** @param flush called when much has been given up, on the thread that did; must not block */
    PeerSlabs(Arena arena, Runnable flush) {
        this.arena = arena;
        this.flush = flush;
    }

    /** The worker has made a file, whose name goes away. */
    void map(int number, Path path, int size) {
        try {
            slabs.put(
                    number,
                    new Slab(number, FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE), size));
            Files.delete(path);
        } catch (IOException e) {
            throw ServingException.internal("the shared memory " + path + " cannot be mapped", e);
        }
    }

    /**
     * Tensors of descriptions {@code [name, type, shape, slab, place, skip, length]}, owned by the caller.
     *
     * @throws ServingException INTERNAL for one that cannot be
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

    /** Gives up what nobody wants. */
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
                throw ServingException.of(
                        ErrorCode.INTERNAL, "a tensor lies where a request was that has been answered before");
            }
            try {
                return MemoryRegion.ofForeign(chunk.slice(skip, length), chunk::release);
            } catch (RuntimeException e) {
                chunk.release();
                throw e;
            }
        }
        Slab slab = slabs.get(number);
        if (slab == null) {
            throw ServingException.of(ErrorCode.INTERNAL, "a tensor lies in an unknown file");
        }
        ByteBuffer memory = slab.slice(at, length);
        slab.retain();
        return MemoryRegion.ofForeign(memory, () -> {
            free(number, at, length);
            slab.release();
        });
    }

    private void free(int number, int at, int length) {
        freed.add(new int[] {number, at});
        long bytes = freedBytes.addAndGet(length);
        if (freedCount.incrementAndGet() == FLUSH_COUNT || (bytes >= FLUSH_BYTES && bytes - length < FLUSH_BYTES)) {
            flush.run();
        }
    }

    /** What has been given up and not been told yet. */
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

    /** The worker has gone; tensors stay as long as they are wanted. */
    void close() {
        for (Integer number : List.copyOf(slabs.keySet())) {
            Slab slab = slabs.remove(number);
            if (slab != null) {
                slab.release();
            }
        }
    }
}
