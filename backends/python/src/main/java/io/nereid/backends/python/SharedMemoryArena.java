// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import com.google.errorprone.annotations.concurrent.GuardedBy;
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
 * The server's allocator of shared memory for one worker: requests' inputs are copied into its chunks. The memory is a
 * list of mapped files ({@link SharedMemorySegment}) that only grows while the worker lives; a chunk is a range of one
 * file.
 *
 * <p>Sizes are rounded up to size classes (at most a quarter more), each with a free list. A freed chunk goes to the
 * front of its list, so that the next request gets pages that are still in the processor's cache. Chunks are never
 * merged: the sizes of a model's inputs repeat. Thread-safe: its own lock guards the lists, a chunk's count is atomic.
 */
final class SharedMemoryArena {
    private static final int BLOCK = 64;
    private static final int PAGE = 4096;

    private final PythonSettings settings;
    private final Announcer announcer;

    @GuardedBy("this") private final Map<Integer, Deque<Chunk>> free = new HashMap<>();

    @GuardedBy("this") private final Map<Long, Chunk> byKey = new HashMap<>();

    @GuardedBy("this") private final List<SharedMemorySegment> segments = new ArrayList<>();

    @GuardedBy("this") private int used;

    @GuardedBy("this") private boolean closed;

    /** Sends the worker the name of a new file, before any frame that refers to memory in it. */
    interface Announcer {
        void announce(int number, Path file, int size);
    }

    SharedMemoryArena(PythonSettings settings, Announcer announcer) {
        this.settings = settings;
        this.announcer = announcer;
    }

    /**
     * A range of a file with a count of owners: the request that it was allocated for, and every response tensor that
     * the model returned from its input memory. The last owner's release puts the chunk on the free list.
     */
    final class Chunk {
        private final SharedMemorySegment segment;
        private final int at;
        private final int size;
        private final AtomicInteger owners = new AtomicInteger();

        Chunk(SharedMemorySegment segment, int at, int size) {
            this.segment = segment;
            this.at = at;
            this.size = size;
        }

        int segment() {
            return segment.number();
        }

        int at() {
            return at;
        }

        ByteBuffer slice(int from, int length) {
            if (from < 0 || length < 0 || from > size - length) {
                throw new IndexOutOfBoundsException("bytes " + from + " to " + (from + length) + " of " + size);
            }
            return segment.slice(at + from, length);
        }

        /**
         * Adds an owner; false when the last owner has released the chunk, so that it may be in use by another request.
         */
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
                segment.release();
            }
        }
    }

    /** The size class: multiples of 64 bytes up to 256, above that four steps per power of two. */
    static int rounded(int size) {
        int step = size <= 4 * BLOCK ? BLOCK : Math.max(BLOCK, Integer.highestOneBit(size - 1) >> 2);
        return (size + step - 1) / step * step;
    }

    /**
     * Allocates a chunk with one owner.
     *
     * @param size above 0
     * @throws ServingException RESOURCE_EXHAUSTED when there is not enough space for another file
     */
    synchronized Chunk take(int size) {
        int rounded = rounded(size);
        Deque<Chunk> known = free.get(rounded);
        Chunk chunk = known == null ? null : known.pollFirst();
        if (chunk == null) {
            SharedMemorySegment last = segments.isEmpty() ? null : segments.get(segments.size() - 1);
            if (last == null || rounded > last.size() - used) {
                last = grow(rounded);
            }
            chunk = new Chunk(last, used, rounded);
            byKey.put(key(last.number(), used), chunk);
            used += rounded;
        }
        chunk.segment.retain();
        chunk.owners.set(1);
        return chunk;
    }

    /** The chunk that begins at this position of this file, or null. */
    synchronized @Nullable Chunk at(int segment, int at) {
        return byKey.get(key(segment, at));
    }

    private static long key(int segment, int at) {
        return (long) segment << 32 | at;
    }

    private synchronized void give(Chunk chunk) {
        free.computeIfAbsent(chunk.size, s -> new ArrayDeque<>()).addFirst(chunk);
    }

    /**
     * Creates another file. The free space is checked first, because a write to a mapping of a full file system
     * fails with SIGBUS instead of an exception that could be handled.
     */
    @GuardedBy("this") private SharedMemorySegment grow(int least) {
        int wanted = segments.isEmpty() ? settings.initialBytes() : settings.growthBytes();
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
                SharedMemorySegment segment;
                try {
                    segment = new SharedMemorySegment(
                            segments.size(),
                            FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE),
                            size);
                } catch (IOException e) {
                    Files.deleteIfExists(path);
                    throw e;
                }
                segments.add(segment);
                used = 0;
                announcer.announce(segment.number(), path, size);
                return segment;
            } catch (IOException e) {
                problem = e;
            }
        }
        throw ServingException.of(
                ErrorCode.RESOURCE_EXHAUSTED,
                "not enough shared memory for " + size + " bytes of tensors of a Python model: "
                        + (problem == null ? "no directory" : problem.getMessage()),
                "make /dev/shm larger (docker run --shm-size)");
    }

    /** The worker has ended: releases the files, each of which stays as long as a tensor refers to it. */
    synchronized void close() {
        if (!closed) {
            closed = true;
            segments.forEach(SharedMemorySegment::release);
        }
    }
}
