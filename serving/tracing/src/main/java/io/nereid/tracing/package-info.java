// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Which requests are traced, and where their traces go: files in Triton's form, or OpenTelemetry. */
@NullMarked
package io.nereid.tracing;

import org.jspecify.annotations.NullMarked;
