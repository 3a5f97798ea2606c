// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.spi;

/**
 * A GPU of this machine, or a part of one, that can be used. Immutable.
 *
 * @param ordinal its number in this server
 * @param uuid its identity, as {@code CUDA_VISIBLE_DEVICES} has it
 * @param name the name of its product; that of a part ends with {@code MIG} and its profile, such as {@code MIG 1g.5gb}
 */
public record LocalGpu(int ordinal, String uuid, String name) {}
