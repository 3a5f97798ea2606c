// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.fleet;

/**
 * What is simulated. Immutable. A pod computes {@code workers} requests at once and queues others; it loads {@code slots}
 * models at once; a load takes half a second and the time of its bytes at 200 MB/s.
 *
 * @param models how many models
 * @param pods how many pods at the beginning
 * @param podBytes the memory of a pod for models
 * @param workers of a pod
 * @param slots loads of a pod at once
 * @param rate requests a second of all models together
 * @param costMillis the mean time that a request occupies a worker
 * @param medianBytes the median size of a model; sizes are log-normal with sigma 1, at most an eighth of a pod
 * @param skew the exponent of Zipf's law
 * @param seconds the length; a day is compressed into it
 * @param warmup seconds that do not count
 * @param loseAt when pods are lost
 * @param lose how many at once
 * @param replaceAt when as many new pods come
 * @param growAt when pods are added
 * @param grow how many
 * @param shrinkAt when as many begin to drain, one each 5 s
 * @param seed of everything random
 */
record FleetScenario(
        int models,
        int pods,
        long podBytes,
        int workers,
        int slots,
        double rate,
        double costMillis,
        long medianBytes,
        double skew,
        int seconds,
        int warmup,
        int loseAt,
        int lose,
        int replaceAt,
        int growAt,
        int grow,
        int shrinkAt,
        long seed) {
    /** 10,000 models on 100 pods: the models need about 1 TB, and the pods have 0.86 TB. */
    static FleetScenario full() {
        return new FleetScenario(
                10_000,
                100,
                8L << 30,
                4,
                2,
                1_500,
                60,
                60_000_000,
                1.0,
                3_600,
                600,
                1_200,
                5,
                1_320,
                1_800,
                20,
                2_700,
                7);
    }

    /** The same shape in a fifth of the size, for a test. */
    static FleetScenario small() {
        return new FleetScenario(
                2_000, 20, 8L << 30, 4, 2, 300, 60, 60_000_000, 1.0, 1_200, 300, 400, 1, 460, 600, 4, 900, 7);
    }

    /** How long a model of this size loads, in nanoseconds. */
    static long loadNanos(long bytes) {
        return 500_000_000L + bytes * 5;
    }

    /** The same scenario with another seed. */
    FleetScenario seeded(long other) {
        return new FleetScenario(
                models,
                pods,
                podBytes,
                workers,
                slots,
                rate,
                costMillis,
                medianBytes,
                skew,
                seconds,
                warmup,
                loseAt,
                lose,
                replaceAt,
                growAt,
                grow,
                shrinkAt,
                other);
    }
}
