// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.serving;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * An immutable map by name that is cheap to change: it consists of shards, and a changed copy shares all shards without
 * a change. With thousands of models, a copy of the whole map for each state change would dominate the start of the
 * server.
 */
final class ShardedMap<V> {
    private static final int COUNT = 256;

    private final Map<String, V>[] shards;

    /** Creates an empty map. */
    ShardedMap() {
        this(empty());
    }

    private ShardedMap(Map<String, V>[] shards) {
        this.shards = shards;
    }

    @SuppressWarnings({"unchecked", "rawtypes"}) // arrays cannot be created with type parameters
    private static <V> Map<String, V>[] empty() {
        Map<String, V>[] shards = new Map[COUNT];
        Arrays.fill(shards, Map.of());
        return shards;
    }

    private static int shard(String name) {
        int h = name.hashCode();
        // HashMap uses the low bits of the hash within a shard, so other bits select the shard.
        return (h ^ (h >>> 16) ^ (h >>> 8)) >>> 4 & (COUNT - 1);
    }

    @Nullable V get(String name) {
        return shards[shard(name)].get(name);
    }

    /** Returns this map with some values replaced, or removed if null. */
    ShardedMap<V> with(Map<String, @Nullable V> changes) {
        Map<String, V>[] next = shards.clone();
        changes.forEach((name, value) -> {
            int i = shard(name);
            if (next[i] == shards[i]) {
                next[i] = new HashMap<>(next[i]);
            }
            if (value == null) {
                next[i].remove(name);
            } else {
                next[i].put(name, value);
            }
        });
        return new ShardedMap<>(next);
    }

    boolean allMatch(Predicate<V> predicate) {
        for (Map<String, V> shard : shards) {
            for (V value : shard.values()) {
                if (!predicate.test(value)) {
                    return false;
                }
            }
        }
        return true;
    }

    /** Returns all entries in unspecified order. */
    List<Map.Entry<String, V>> all() {
        List<Map.Entry<String, V>> all = new ArrayList<>();
        for (Map<String, V> shard : shards) {
            all.addAll(shard.entrySet());
        }
        return all;
    }
}
