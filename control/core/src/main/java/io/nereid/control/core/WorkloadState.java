// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import org.jspecify.annotations.Nullable;

/**
 * The state of one workload.
 *
 * @param phase its phase
 * @param replicas the number of ready replicas
 * @param desired the desired number of replicas
 * @param failure the failure since it was last ready; null for none
 * @param traffic statistics of its recent requests
 */
public record WorkloadState(
        ObservedState.Phase phase,
        int replicas,
        int desired,
        ObservedState.@Nullable Failure failure,
        ObservedState.Traffic traffic) {}
