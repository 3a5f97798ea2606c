// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.serving;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class ShardedMapTest {
    @Test
    void isAMapOfWhichEveryStateStays() {
        Random random = new Random(4);
        ShardedMap<Integer> shards = new ShardedMap<>();
        Map<String, Integer> expected = new HashMap<>();
        for (int round = 0; round < 3_000; round++) {
            ShardedMap<Integer> before = shards;
            Map<String, Integer> expectedBefore = new HashMap<>(expected);
            Map<String, @Nullable Integer> changes = new HashMap<>();
            for (int i = random.nextInt(4); i >= 0; i--) {
                String name = "model-" + random.nextInt(700);
                if (random.nextInt(3) == 0) {
                    changes.put(name, null);
                    expected.remove(name);
                } else {
                    changes.put(name, round);
                    expected.put(name, round);
                }
            }
            shards = before.with(changes);
            if (round % 50 == 0) {
                check(before, expectedBefore);
                check(shards, expected);
            }
        }
        check(shards, expected);
        assertThat(shards.get("unknown")).isNull();
    }

    private static void check(ShardedMap<Integer> shards, Map<String, Integer> expected) {
        Map<String, Integer> all = new HashMap<>();
        shards.all().forEach(e -> all.put(e.getKey(), e.getValue()));
        assertThat(all).isEqualTo(expected);
        expected.forEach((name, value) -> assertThat(shards.get(name)).isEqualTo(value));
    }
}
