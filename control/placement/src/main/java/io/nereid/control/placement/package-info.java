// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * Places many models on the pods of a pool: consistent hashing with bounded loads, copies by load, memory admission with
 * least-recently-used eviction, recovery after a lost pod, moves after a new one, and the number of pods. Decisions only:
 * no sockets, no threads, no clock of its own. One thread owns a {@link io.nereid.control.placement.PoolPlacement};
 * the threads of requests use its {@link io.nereid.control.placement.CopyTable}.
 */
@NullMarked
package io.nereid.control.placement;

import org.jspecify.annotations.NullMarked;
