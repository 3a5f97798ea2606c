// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** What all runners of workloads share: the runner interface, the event loop, routing, logs and back-off. */
@NullMarked
package io.nereid.control.local.workload;

import org.jspecify.annotations.NullMarked;
