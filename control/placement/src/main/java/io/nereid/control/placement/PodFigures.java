// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

/**
 * What one pod carries. Immutable.
 *
 * @param memoryBytes the limit
 * @param usedBytes the bytes of models that are loading, loaded or leaving
 * @param models how many these are
 * @param pendingLoads loads that run or wait
 * @param demand busy workers that its models ask for, by their smoothed rates
 * @param inFlight requests in flight
 */
public record PodFigures(long memoryBytes, long usedBytes, int models, int pendingLoads, double demand, int inFlight) {}
