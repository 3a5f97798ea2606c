// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

final class HashRingTest {
    private static final int KEYS = 20_000;

    private static HashRing ring(int pods) {
        Map<String, Double> weights = new HashMap<>();
        for (int i = 0; i < pods; i++) {
            weights.put("pod-" + i, 1.0);
        }
        return HashRing.of(weights, 7);
    }

    private static String home(HashRing ring, int key) {
        String home = ring.first(ring.hash("model-" + key), pod -> true);
        assertThat(home).isNotNull();
        return home;
    }

    @Test
    void aJoiningPodTakesItsShareAndNothingElseMoves() {
        HashRing before = ring(20);
        HashRing after = ring(21);
        int moved = 0;
        for (int key = 0; key < KEYS; key++) {
            if (!home(before, key).equals(home(after, key))) {
                assertThat(home(after, key)).isEqualTo("pod-20");
                moved++;
            }
        }
        assertThat((double) moved / KEYS).isBetween(0.7 / 21, 1.3 / 21);
    }

    @Test
    void sharesFollowTheWeights() {
        HashRing ring = HashRing.of(Map.of("small", 1.0, "large", 3.0), 7);
        int large = 0;
        for (int key = 0; key < KEYS; key++) {
            large += home(ring, key).equals("large") ? 1 : 0;
        }
        assertThat((double) large / KEYS).isBetween(0.68, 0.82);
    }

    @Test
    void withABoundNoPodHasMoreThanItsLimit() {
        HashRing ring = ring(20);
        HashRing.LoadBound bound = new HashRing.LoadBound(0.1);
        Map<String, Integer> counts = new TreeMap<>();
        for (int key = 0; key < KEYS; key++) {
            // Loads of whole numbers: the limit is rounded up, as in the paper.
            double limit = Math.ceil(bound.limit(key + 1, 1, 20, 1));
            String pod = ring.first(ring.hash("model-" + key), name -> counts.getOrDefault(name, 0) + 1 <= limit);
            assertThat(pod).isNotNull();
            counts.merge(pod, 1, Integer::sum);
        }
        assertThat(counts.values()).allMatch(count -> count <= Math.ceil(1.1 * KEYS / 20));
    }

    @Test
    void aSequenceHasEachPodOnceAndAnEmptyRingNone() {
        HashRing ring = ring(5);
        assertThat(ring.sequence(ring.hash("iris"), 9)).hasSize(5).doesNotHaveDuplicates();
        assertThat(ring.sequence(ring.hash("iris"), 2))
                .isEqualTo(ring.sequence(ring.hash("iris"), 9).subList(0, 2));
        HashRing empty = HashRing.of(Map.of(), 7);
        assertThat(empty.first(3, pod -> true)).isNull();
        assertThat(empty.sequence(3, 2)).isEqualTo(List.of());
    }
}
