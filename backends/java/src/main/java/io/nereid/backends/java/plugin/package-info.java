// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The backends that this module offers: models from jars, and one backend for each built-in model. */
@NullMarked
package io.nereid.backends.java.plugin;

import org.jspecify.annotations.NullMarked;
