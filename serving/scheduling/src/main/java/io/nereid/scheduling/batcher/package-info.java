// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The dynamic batcher: {@link io.nereid.scheduling.batcher.RequestQueue} keeps the jobs in order,
 * {@link io.nereid.scheduling.batcher.BatchBuilder} decides when a batch closes, with
 * {@link io.nereid.scheduling.batcher.BatchAnticipation} for what is about to arrive, and
 * {@link io.nereid.scheduling.batcher.DynamicBatcher} runs it. Decorators of a job split it over several batches or
 * keep its response in order.
 */
@NullMarked
package io.nereid.scheduling.batcher;

import org.jspecify.annotations.NullMarked;
