// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.tune;

/**
 * The values of a model's configuration that are searched. Immutable.
 *
 * @param batchSize rows at which a batch is closed; 0 for a model that does not batch
 * @param delayMicros how long the first request of a batch waits for others, in microseconds
 * @param instances instances of the model
 * @param threads threads of a run
 */
record ConfigVariant(int batchSize, long delayMicros, int instances, int threads) {
    ConfigVariant withBatchSize(int value) {
        return new ConfigVariant(value, delayMicros, instances, threads);
    }

    ConfigVariant withDelayMicros(long value) {
        return new ConfigVariant(batchSize, value, instances, threads);
    }

    ConfigVariant withWidth(int count, int width) {
        return new ConfigVariant(batchSize, delayMicros, count, width);
    }

    /** In words: {@code batch 8, delay 500 us, 2 instances of 1 thread}. */
    String describe() {
        return (batchSize == 0 ? "no batching, " : "batch " + batchSize + ", delay " + delayMicros + " us, ")
                + instances
                + (instances == 1 ? " instance of " : " instances of ")
                + threads
                + (threads == 1 ? " thread" : " threads");
    }
}
