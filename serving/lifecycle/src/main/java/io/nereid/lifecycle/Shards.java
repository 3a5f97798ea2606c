// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * A map by name of which a changed copy costs little, however many names there are: only the shards that change are
 * copied. Immutable.
 */
final class Shards<V> {
    private static final int COUNT = 256;

    private final Map<String, V>[] shards;

    /** An empty one. */
    Shards() {
        this(empty());
    }

    private Shards(Map<String, V>[] shards) {
        this.shards = shards;
    }

    @SuppressWarnings({"unchecked", "rawtypes"}) // arrays know no type parameters
    private static <V> Map<String, V>[] empty() {
        Map<String, V>[] shards = new Map[COUNT];
        Arrays.fill(shards, Map.of());
        return shards;
    }

    private static int shard(String name) {
        int h = name.hashCode();
        // HashMap uses the low bits, so others choose the shard.
        return (h ^ (h >>> 16) ^ (h >>> 8)) >>> 4 & (COUNT - 1);
    }

    @Nullable V get(String name) {
        return shards[shard(name)].get(name);
    }

    /** This map with some values replaced, or removed where null. */
    Shards<V> with(Map<String, @Nullable V> changes) {
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
        return new Shards<>(next);
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

    /** All entries, in no order. */
    List<Map.Entry<String, V>> all() {
        List<Map.Entry<String, V>> all = new ArrayList<>();
        for (Map<String, V> shard : shards) {
            all.addAll(shard.entrySet());
        }
        return all;
    }
}
