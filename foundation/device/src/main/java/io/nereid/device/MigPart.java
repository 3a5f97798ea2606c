// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.device;

/**
 * A part of a GPU by NVIDIA's Multi-Instance GPU. Immutable.
 *
 * @param parentUuid the whole GPU
 * @param gpuInstance the number of the GPU instance, which has the memory
 * @param computeInstance the number of the compute instance in it
 */
public record MigPart(String parentUuid, int gpuInstance, int computeInstance) {}
