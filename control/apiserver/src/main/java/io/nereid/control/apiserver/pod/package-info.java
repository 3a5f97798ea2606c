// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Pods: a read-only view of the running workloads, and their logs. */
@NullMarked
package io.nereid.control.apiserver.pod;

import org.jspecify.annotations.NullMarked;
