// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The command {@code nereid convert}: what a model file is, and how it can be served. */
@NullMarked
package io.nereid.app.convert;

import org.jspecify.annotations.NullMarked;
