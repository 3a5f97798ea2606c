// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Consistent hashing (Karger et al. 1997): pods have points on a ring, in proportion to their weight, and a key belongs to
 * the pods in the order in which their points follow its hash. A pod that joins takes keys from all others in equal
 * shares, and no key moves between two others; a pod that leaves gives its keys to all others. Immutable, so that any
 * thread may use it.
 *
 * <p>{@link #first} takes the first pod that a condition accepts. With the condition that a pod is below (1 + epsilon)
 * times the average load it is consistent hashing with bounded loads (V. Mirrokni, M. Thorup, M. Zadimoghaddam:
 * Consistent Hashing with Bounded Loads, 2016, arXiv:1608.01350), in which one change of a pod or a key moves
 * O(1/epsilon²) keys in expectation.
 *
 * <pre>{@code
 * HashRing ring = HashRing.of(Map.of("pod-a", 1.0, "pod-b", 2.0), 7);
 * String pod = ring.first(ring.hash("iris"), name -> load(name) < bound(name));
 * }</pre>
 */
public final class HashRing {
    /**
     * The bound of consistent hashing with bounded loads: a pod takes another model while its load stays below (1 + excess)
     * times the load that its weight entitles it to. Immutable.
     *
     * @param excess epsilon of the algorithm, more than 0: smaller is more even, and moves more
     */
    public record LoadBound(double excess) {
        /**
         * The load that a pod may have.
         *
         * @param total the load of all pods, the new one included
         * @param weight the weight of the pod
         * @param totalWeight the weights of all pods
         * @param least a load below which imbalance does no harm; it is permitted in any case
         */
        public double limit(double total, double weight, double totalWeight, double least) {
            return Math.max(least, (1 + excess) * total * weight / totalWeight);
        }
    }

    /** Points of a pod of weight 1: the shares of equal pods then differ by about 1/sqrt(160), 8 %. */
    private static final int POINTS = 160;

    private final long seed;
    private final List<String> pods;
    private final long[] points;
    private final int[] owners;

    private HashRing(long seed, List<String> pods, long[] points, int[] owners) {
        this.seed = seed;
        this.pods = pods;
        this.points = points;
        this.owners = owners;
    }

    /**
     * Creates a ring.
     *
     * @param weights the pods and their weights; a pod has 160 points for a weight of 1, and at least one. The points of a
     *     pod depend on its own name and weight only.
     * @param seed of the hashes
     */
    public static HashRing of(Map<String, Double> weights, long seed) {
        List<String> pods = weights.keySet().stream().sorted().toList();
        int[] counts = new int[pods.size()];
        int total = 0;
        for (int i = 0; i < counts.length; i++) {
            counts[i] = (int) Math.max(1, Math.round(POINTS * weights.getOrDefault(pods.get(i), 1.0)));
            total += counts[i];
        }
        long[][] sorted = new long[total][];
        int at = 0;
        for (int i = 0; i < counts.length; i++) {
            for (int point = 0; point < counts[i]; point++) {
                sorted[at++] = new long[] {hash(pods.get(i) + "#" + point, seed), i};
            }
        }
        // Points of two pods that fall together are ordered by the pods' names, so that the order of joining is not
        // seen.
        Arrays.sort(sorted, (a, b) -> a[0] != b[0] ? Long.compareUnsigned(a[0], b[0]) : Long.compare(a[1], b[1]));
        long[] points = new long[total];
        int[] owners = new int[total];
        for (int i = 0; i < total; i++) {
            points[i] = sorted[i][0];
            owners[i] = (int) sorted[i][1];
        }
        return new HashRing(seed, pods, points, owners);
    }

    /** The pods, by name. */
    public List<String> pods() {
        return pods;
    }

    /** The place of a key on the ring. */
    public long hash(String key) {
        return hash(key, seed);
    }

    /** The first pod after a place that a condition accepts, or null. Each pod is asked at most once. */
    public @Nullable String first(long place, Predicate<String> accepts) {
        boolean[] asked = new boolean[pods.size()];
        int left = pods.size();
        int start = start(place);
        for (int i = 0; i < points.length && left > 0; i++) {
            int owner = owners[(start + i) % points.length];
            if (!asked[owner]) {
                asked[owner] = true;
                left--;
                if (accepts.test(pods.get(owner))) {
                    return pods.get(owner);
                }
            }
        }
        return null;
    }

    /** The first {@code count} pods after a place, in order; all pods when there are fewer. */
    public List<String> sequence(long place, int count) {
        List<String> found = new ArrayList<>();
        String enough = first(place, pod -> {
            found.add(pod);
            return found.size() >= count;
        });
        assert enough != null || found.size() == pods.size();
        return found;
    }

    private int start(long place) {
        int low = 0;
        int high = points.length;
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (Long.compareUnsigned(points[middle], place) < 0) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }

    /** FNV-1a over the bytes, then the finaliser of SplitMix64: names that differ in one digit must lie far apart. */
    static long hash(String text, long seed) {
        long h = 0xcbf29ce484222325L ^ seed;
        for (byte b : text.getBytes(StandardCharsets.UTF_8)) {
            h = (h ^ (b & 0xff)) * 0x100000001b3L;
        }
        h = (h ^ (h >>> 30)) * 0xbf58476d1ce4e5b9L;
        h = (h ^ (h >>> 27)) * 0x94d049bb133111ebL;
        return h ^ (h >>> 31);
    }
}
