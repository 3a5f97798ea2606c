// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

/**
 * The memory that a pool needs for a hit rate, by Che's approximation of least-recently-used caches (H. Che, Y. Tung, Z.
 * Wang: Hierarchical Web Caching Systems, 2002): a cache that keeps what was used within a time T has the model i with the
 * probability 1 - exp(-rate(i) T). From it follow the hit rate and the bytes of each T, and the T of a hit rate.
 * Immutable.
 *
 * @param bytes the expected bytes of the models that are kept
 * @param seconds T: how long a model is kept after its last use
 * @param hitRate the share of requests that find their model
 */
public record WorkingSet(double bytes, double seconds, double hitRate) {
    private static final double SHORTEST = 1e-3;
    private static final double LONGEST = 1e9;
    private static final int STEPS = 60;

    /** The rates and sizes of models. Shared arrays that neither side changes. */
    public static final class Demand {
        private final double[] rates;
        private final long[] bytes;

        /**
         * Creates it.
         *
         * @param rates requests a second of each model
         * @param bytes the bytes of each model, all copies together
         */
        public Demand(double[] rates, long[] bytes) {
            this.rates = rates;
            this.bytes = bytes;
        }
    }

    /**
     * The smallest working set with a hit rate.
     *
     * @param hitRate the target, for example 0.99; 1 needs all models that have requests
     */
    public static WorkingSet of(Demand demand, double hitRate) {
        double low = SHORTEST;
        double high = LONGEST;
        for (int i = 0; i < STEPS; i++) {
            double middle = Math.sqrt(low * high);
            if (at(demand, middle).hitRate < hitRate) {
                low = middle;
            } else {
                high = middle;
            }
        }
        return at(demand, high);
    }

    /** The working set of models that are kept for some seconds after their last use. */
    static WorkingSet at(Demand demand, double seconds) {
        double kept = 0;
        double hits = 0;
        double all = 0;
        for (int i = 0; i < demand.rates.length; i++) {
            double rate = demand.rates[i];
            double held = -Math.expm1(-rate * seconds);
            kept += held * demand.bytes[i];
            hits += held * rate;
            all += rate;
        }
        return new WorkingSet(kept, seconds, all == 0 ? 1 : hits / all);
    }
}
