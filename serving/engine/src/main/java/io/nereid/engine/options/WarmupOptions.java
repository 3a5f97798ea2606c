// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.options;

/**
 * How the requests recorded in {@code assets.extra/tf_serving_warmup_requests} of a version run before it becomes
 * available. Immutable.
 *
 * @param enabled whether they run
 * @param iterations how often each request runs, at least 1
 * @param threads how many requests run at once, at least 1
 * @param allBatchSizes whether each request also runs in batches of every allowed size
 */
public record WarmupOptions(boolean enabled, int iterations, int threads, boolean allBatchSizes) {
    /** Each request runs once, one after the other. */
    public static final WarmupOptions DEFAULT = new WarmupOptions(true, 1, 1, false);
}
