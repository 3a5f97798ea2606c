// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The second stage of planning on one machine: the workloads that run in the engine or as processes of this server, and
 * the warnings about what has no effect there.
 */
@NullMarked
package io.nereid.control.core.local;

import org.jspecify.annotations.NullMarked;
