// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Metrics of embedded models in the application's Micrometer registry. */
@NullMarked
package io.nereid.embedded.micrometer;

import org.jspecify.annotations.NullMarked;
