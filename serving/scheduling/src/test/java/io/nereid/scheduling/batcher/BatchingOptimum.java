// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * What a batcher could reach at best if it knew all that will come: dynamic programmes for one instance whose runs take exactly
 * {@code fixed + rows * row}. Requests run in the order of their arrival. Times are in nanoseconds. Confined to one thread.
 */
final class BatchingOptimum {
    private final long fixed;
    private final long row;
    private final int maxBatch;

    BatchingOptimum(long fixed, long row, int maxBatch) {
        this.fixed = fixed;
        this.row = row;
        this.maxBatch = maxBatch;
    }

    /** A way to have served the first requests: when its last run ended, and the sum of the times of the requests. */
    private record State(long free, double sum) {}

    /** Returns the least possible mean time of requests that arrive at known times, ascending. */
    double meanTime(long[] arrivals) {
        int count = arrivals.length;
        List<List<State>> states = new ArrayList<>();
        for (int i = 0; i <= count; i++) {
            states.add(new ArrayList<>());
        }
        states.get(0).add(new State(Long.MIN_VALUE / 2, 0));
        for (int i = 0; i < count; i++) {
            List<State> best = undominated(states.get(i));
            states.set(i, List.of());
            for (State state : best) {
                double arrived = 0;
                for (int size = 1; size <= maxBatch && i + size <= count; size++) {
                    long last = arrivals[i + size - 1];
                    arrived += last;
                    long end = Math.max(state.free, last) + fixed + size * row;
                    states.get(i + size).add(new State(end, state.sum + (double) size * end - arrived));
                }
            }
        }
        return undominated(states.get(count)).stream()
                        .mapToDouble(State::sum)
                        .min()
                        .orElseThrow()
                / count;
    }

    /** Returns the states that no other one beats in both numbers. */
    private static List<State> undominated(List<State> states) {
        State[] sorted = states.toArray(new State[0]);
        Arrays.sort(sorted, (a, b) -> a.free != b.free ? Long.compare(a.free, b.free) : Double.compare(a.sum, b.sum));
        List<State> kept = new ArrayList<>();
        for (State state : sorted) {
            if (kept.isEmpty() || state.sum < kept.get(kept.size() - 1).sum) {
                kept.add(state);
            }
        }
        return kept;
    }

    /**
     * Returns the least possible time in which clients get so many responses, if each sends again {@code back} after its response.
     */
    double timeOf(int requests, int clients, long back) {
        return least(requests, new long[clients], back, new HashMap<>());
    }

    /** Returns the time from now, when the instance is free, if the clients send at these times from now. */
    private double least(int requests, long[] ready, long back, Map<List<Long>, Double> known) {
        if (requests <= 0) {
            return 0;
        }
        List<Long> key = new ArrayList<>();
        key.add((long) requests);
        for (long at : ready) {
            // When a request came before now does not matter.
            key.add(Math.max(0, at));
        }
        Double before = known.get(key);
        if (before != null) {
            return before;
        }
        double best = Double.MAX_VALUE;
        for (int size = 1; size <= Math.min(maxBatch, Math.min(requests, ready.length)); size++) {
            long end = Math.max(0, ready[size - 1]) + fixed + size * row;
            long[] next = new long[ready.length];
            for (int i = 0; i < ready.length; i++) {
                next[i] = i < ready.length - size ? Math.max(0, ready[i + size] - end) : back;
            }
            Arrays.sort(next);
            best = Math.min(best, end + least(requests - size, next, back, known));
        }
        known.put(key, best);
        return best;
    }
}
