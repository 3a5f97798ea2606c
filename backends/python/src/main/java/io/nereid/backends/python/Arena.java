// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Gives out stretches of memory that one worker sees. Sizes are rounded to one of a few, and what comes back is given out
 * again, the last first, while its pages are warm. Thread-safe, by its lock.
 */
final class Arena {
    private static final int BLOCK = 64;
    private static final int PAGE = 4096;

    private final PythonSettings settings;
    private final Announcer announcer;
    private final Map<Integer, Deque<Chunk>> free = new HashMap<>();
    private final Map<Long, Chunk> byPlace = new HashMap<>();
    private final List<Slab> slabs = new ArrayList<>();
    private int used;
    private boolean closed;

    /** Tells the worker of a file, before anything that lies in it. */
    interface Announcer {
        void announce(int number, Path file, int size);
    }

    Arena(PythonSettings settings, Announcer announcer) {
        this.settings = settings;
        this.announcer = announcer;
    }

    /** A stretch of a slab with a count of owners. */
    final class Chunk {
        private final Slab slab;
        private final int at;
        private final int size;
        private final AtomicInteger owners = new AtomicInteger();

        Chunk(Slab slab, int at, int size) {
            this.slab = slab;
            this.at = at;
            this.size = size;
        }

        int slab() {
            return slab.number();
        }

        int at() {
            return at;
        }

        ByteBuffer slice(int from, int length) {
            if (from < 0 || length < 0 || from > size - length) {
                throw new IndexOutOfBoundsException("bytes " + from + " to " + (from + length) + " of " + size);
            }
            return slab.slice(at + from, length);
        }

        /** One more owner, unless there is none any more. */
        boolean retain() {
            int now = owners.get();
            while (now > 0) {
                if (owners.compareAndSet(now, now + 1)) {
                    return true;
                }
                now = owners.get();
            }
            return false;
        }

        void release() {
            if (owners.decrementAndGet() == 0) {
                give(this);
                slab.release();
            }
        }
    }

    static int rounded(int size) {
        int step = size <= 4 * BLOCK ? BLOCK : Math.max(BLOCK, Integer.highestOneBit(size - 1) >> 2);
        return (size + step - 1) / step * step;
    }

    /**
     * A chunk with one owner.
     *
     * @param size above 0
     * @throws ServingException RESOURCE_EXHAUSTED when there is no room for another file
     */
    synchronized Chunk take(int size) {
        int rounded = rounded(size);
        Deque<Chunk> known = free.get(rounded);
        Chunk chunk = known == null ? null : known.pollFirst();
        if (chunk == null) {
            Slab last = slabs.isEmpty() ? null : slabs.get(slabs.size() - 1);
            if (last == null || rounded > last.size() - used) {
                last = grow(rounded);
            }
            chunk = new Chunk(last, used, rounded);
            byPlace.put(place(last.number(), used), chunk);
            used += rounded;
        }
        chunk.slab.retain();
        chunk.owners.set(1);
        return chunk;
    }

    /** The chunk at a place, or null. */
    synchronized @Nullable Chunk at(int slab, int at) {
        return byPlace.get(place(slab, at));
    }

    private static long place(int slab, int at) {
        return (long) slab << 32 | at;
    }

    private synchronized void give(Chunk chunk) {
        free.computeIfAbsent(chunk.size, s -> new ArrayDeque<>()).addFirst(chunk);
    }

    private Slab grow(int least) {
        int wanted = slabs.isEmpty() ? settings.initialBytes() : settings.growthBytes();
        int size = Math.max(wanted, (int) Math.min(Integer.MAX_VALUE - PAGE, (least + PAGE - 1L) / PAGE * PAGE));
        if (closed) {
            throw ServingException.of(ErrorCode.UNAVAILABLE, "the Python process has ended");
        }
        IOException problem = null;
        for (Path directory : settings.directories()) {
            try {
                if (Files.getFileStore(directory).getUsableSpace() < size) {
                    problem = new IOException(directory + " has less than " + size + " bytes left");
                    continue;
                }
                Path path = Files.createTempFile(directory, settings.prefix(), "");
                Slab slab;
                try {
                    slab = new Slab(
                            slabs.size(),
                            FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE),
                            size);
                } catch (IOException e) {
                    Files.deleteIfExists(path);
                    throw e;
                }
                slabs.add(slab);
                used = 0;
                announcer.announce(slab.number(), path, size);
                return slab;
            } catch (IOException e) {
                problem = e;
            }
        }
        throw ServingException.of(
                ErrorCode.RESOURCE_EXHAUSTED,
                "no room for " + size + " bytes of tensors for a Python model: "
                        + (problem == null ? "no directory" : problem.getMessage()),
                "make /dev/shm larger (docker run --shm-size)");
    }

    /** The worker sees nothing any more. */
    synchronized void close() {
        if (!closed) {
            closed = true;
            slabs.forEach(Slab::release);
        }
    }
}
