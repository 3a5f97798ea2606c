// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.cache;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/**
 * An in-memory LRU cache of responses. Thread-safe: split by hash into shards with one short lock each; nothing is
 * copied or compared under a lock.
 *
 * <p>An entry holds its own off-heap copies of the key and of the outputs. So it neither keeps a request's memory
 * alive nor changes when a client writes to memory that it shares with the server. A hit returns views of the copies,
 * which stay valid after the entry was evicted, because they are reference-counted.
 */
final class LocalResponseCache implements AutoCloseable {
    private static final int MAX_SHARDS = 16;
    private static final long MIN_SHARD_BYTES = 4 << 20;

    /** Estimated memory of an entry besides its bytes. */
    private static final int OVERHEAD = 512;

    private final Shard[] shards;
    private final long shardBytes;
    private final LongAdder evictions = new LongAdder();
    private final LongAdder collisions = new LongAdder();
    private final LongAdder refused = new LongAdder();

    private record Id(long high, long low) {}

    /** The location of an output in the entry's memory. */
    private record Output(String name, DataType type, Shape shape, int offset, int length) {}

    private record Entry(
            Object owner,
            MemoryRegion key,
            MemoryRegion values,
            List<Output> outputs,
            Map<String, Object> parameters,
            long size) {
        void release() {
            key.release();
            values.release();
        }
    }

    /** A part of the entries, with a lock of its own. */
    private static final class Shard {
        @GuardedBy("this") final LinkedHashMap<Id, Entry> entries = new LinkedHashMap<>(64, 0.75f, true);

        @GuardedBy("this") long bytes;
    }

    /** Creates a cache of at most {@code bytes} bytes. One entry can take at most the size of a shard. */
    LocalResponseCache(long bytes) {
        int count = MAX_SHARDS;
        while (count > 1 && bytes / count < MIN_SHARD_BYTES) {
            count /= 2;
        }
        this.shardBytes = bytes / count;
        this.shards = new Shard[count];
        for (int i = 0; i < count; i++) {
            shards[i] = new Shard();
        }
    }

    private Shard shard(CacheKey key) {
        return shards[(int) key.high & shards.length - 1];
    }

    /** Returns the response for a key, whose tensors the caller owns; null on a miss. */
    @Nullable CachedResponse get(CacheKey key) {
        Shard shard = shard(key);
        Id id = new Id(key.high, key.low);
        Entry entry;
        synchronized (shard) {
            entry = shard.entries.get(id);
            if (entry == null) {
                return null;
            }
            // an eviction after the lock is released must not free the entry while it is compared and returned
            entry.key.retain();
            entry.values.retain();
        }
        try {
            if (!key.matches(entry.key)) {
                collisions.increment();
                return null;
            }
            List<Tensor> outputs = new ArrayList<>(entry.outputs.size());
            for (Output o : entry.outputs) {
                entry.values.retain();
                outputs.add(Tensor.over(o.name, o.type, o.shape, entry.values, o.offset, o.length));
            }
            return new CachedResponse(outputs, entry.parameters);
        } finally {
            entry.release();
        }
    }

    /** Stores a copy of a response, unless it is too large or the key is already present. */
    void put(Object owner, CacheKey key, List<Tensor> outputs, Map<String, Object> parameters) {
        long length = 0;
        for (Tensor t : outputs) {
            length = aligned(length) + t.byteLength();
        }
        long size = key.size() + length + OVERHEAD;
        if (size > shardBytes || size > Integer.MAX_VALUE - 64) {
            refused.increment();
            return;
        }
        Shard shard = shard(key);
        Id id = new Id(key.high, key.low);
        // copy outside the lock; the check avoids most useless copies, putIfAbsent below decides
        synchronized (shard) {
            if (shard.entries.containsKey(id)) {
                return;
            }
        }
        Entry entry = copy(owner, key, outputs, parameters, (int) length, size);
        if (entry == null) {
            refused.increment();
            return;
        }
        List<Entry> gone = new ArrayList<>();
        synchronized (shard) {
            if (shard.entries.putIfAbsent(id, entry) != null) {
                gone.add(entry);
            } else {
                shard.bytes += size;
                Iterator<Entry> eldest = shard.entries.values().iterator();
                while (shard.bytes > shardBytes) {
                    Entry e = eldest.next();
                    eldest.remove();
                    shard.bytes -= e.size;
                    gone.add(e);
                    evictions.increment();
                }
            }
        }
        gone.forEach(Entry::release);
    }

    private static @Nullable Entry copy(
            Object owner, CacheKey key, List<Tensor> outputs, Map<String, Object> parameters, int length, long size) {
        MemoryRegion keyBytes;
        MemoryRegion values;
        try {
            keyBytes = key.copy();
        } catch (OutOfMemoryError e) {
            return null;
        }
        try {
            values = MemoryRegion.allocate(length);
        } catch (OutOfMemoryError e) {
            // too little off-heap memory is left for the cache; the response itself must not fail for that
            keyBytes.release();
            return null;
        }
        List<Output> kept = new ArrayList<>(outputs.size());
        long at = 0;
        for (Tensor t : outputs) {
            at = aligned(at);
            values.setBytes((int) at, t.region(), t.offset(), t.byteLength());
            kept.add(new Output(t.name(), t.dataType(), t.shape(), (int) at, t.byteLength()));
            at += t.byteLength();
        }
        return new Entry(owner, keyBytes, values, List.copyOf(kept), Map.copyOf(parameters), size);
    }

    private static long aligned(long offset) {
        return offset + MemoryRegion.ALIGNMENT - 1 & -MemoryRegion.ALIGNMENT;
    }

    /** Removes every entry of an owner. */
    void purge(Object owner) {
        drop(owner);
    }

    private void drop(@Nullable Object owner) {
        for (Shard shard : shards) {
            List<Entry> gone = new ArrayList<>();
            synchronized (shard) {
                Iterator<Entry> all = shard.entries.values().iterator();
                while (all.hasNext()) {
                    Entry e = all.next();
                    if (owner == null || e.owner == owner) {
                        all.remove();
                        shard.bytes -= e.size;
                        gone.add(e);
                    }
                }
            }
            gone.forEach(Entry::release);
        }
    }

    /** Statistics: entries, bytes, evictions, hash collisions, and responses that were too large to store. */
    Map<String, Long> figures() {
        long entries = 0;
        long bytes = 0;
        for (Shard shard : shards) {
            synchronized (shard) {
                entries += shard.entries.size();
                bytes += shard.bytes;
            }
        }
        Map<String, Long> figures = new TreeMap<>();
        figures.put("entries", entries);
        figures.put("bytes", bytes);
        figures.put("capacity", shardBytes * shards.length);
        figures.put("evictions", evictions.sum());
        figures.put("collisions", collisions.sum());
        figures.put("refused", refused.sum());
        return figures;
    }

    @Override
    public void close() {
        drop(null);
    }
}
