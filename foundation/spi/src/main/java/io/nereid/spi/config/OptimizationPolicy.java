// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.config;

import java.util.List;

/**
 * Performance settings for the backend. Immutable.
 *
 * @param graphLevel the graph optimization level, which the backend interprets; 0 for its default
 * @param cpuAccelerators accelerators for CPUs, in order of preference
 * @param gpuAccelerators accelerators for GPUs, in order of preference
 */
public record OptimizationPolicy(
        int graphLevel, List<ExecutionAccelerator> cpuAccelerators, List<ExecutionAccelerator> gpuAccelerators) {
    /** The backend's defaults. */
    public static final OptimizationPolicy DEFAULT = new OptimizationPolicy(0, List.of(), List.of());
}
