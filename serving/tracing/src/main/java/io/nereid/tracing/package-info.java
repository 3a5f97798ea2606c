// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Request tracing: sampling, and export to files in Triton's format or to OpenTelemetry. */
@NullMarked
package io.nereid.tracing;

import org.jspecify.annotations.NullMarked;
