// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Workloads that run as child processes: their commands, ports, probes, limits and restarts. */
@NullMarked
package io.nereid.control.local.process;

import org.jspecify.annotations.NullMarked;
