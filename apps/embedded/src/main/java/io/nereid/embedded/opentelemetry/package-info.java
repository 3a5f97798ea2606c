// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Traces of embedded predictions in the application's OpenTelemetry. */
@NullMarked
package io.nereid.embedded.opentelemetry;

import org.jspecify.annotations.NullMarked;
