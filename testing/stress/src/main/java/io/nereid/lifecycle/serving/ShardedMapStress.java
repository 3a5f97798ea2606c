// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.serving;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;

import java.util.Map;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/** {@link ShardedMap} is immutable: readers of a map never see the changes of a copy, even without synchronisation. */
public final class ShardedMapStress {
    private ShardedMapStress() {}

    /** A map is read while a changed copy of it is made. */
    @JCStressTest
    @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "The old values.")
    @State
    public static class ReadWhileCopied {
        private final ShardedMap<Integer> map = new ShardedMap<Integer>().with(Map.of("a", 1, "b", 1));

        @Actor
        public void reader(II_Result r) {
            r.r1 = value(map, "a");
            r.r2 = value(map, "b");
        }

        @Actor
        public void writer() {
            var unused = map.with(Map.of("a", 2, "b", 2));
        }
    }

    /** A map reaches another thread through a field that is neither volatile nor guarded by a lock. */
    @JCStressTest
    @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "The first map.")
    @Outcome(id = "2, 2", expect = ACCEPTABLE, desc = "The second map, complete.")
    @State
    public static class UnsafePublication {
        private ShardedMap<Integer> map = new ShardedMap<Integer>().with(Map.of("a", 1, "b", 1));

        @Actor
        public void reader(II_Result r) {
            ShardedMap<Integer> now = map;
            r.r1 = value(now, "a");
            r.r2 = value(now, "b");
        }

        @Actor
        public void writer() {
            map = map.with(Map.of("a", 2, "b", 2));
        }
    }

    private static int value(ShardedMap<Integer> map, String name) {
        Integer value = map.get(name);
        return value == null ? -1 : value;
    }
}
