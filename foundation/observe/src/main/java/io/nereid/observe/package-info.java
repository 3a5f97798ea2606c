// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Observability of the server: model statistics, request traces, trace and log settings. */
@NullMarked
package io.nereid.observe;

import org.jspecify.annotations.NullMarked;
