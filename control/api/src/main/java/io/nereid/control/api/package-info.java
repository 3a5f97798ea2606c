// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** KServe's resources as records: reading, defaulting, validation. */
@NullMarked
package io.nereid.control.api;

import org.jspecify.annotations.NullMarked;
