// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Models in PMML, the exchange format of statistics and mining tools. */
@NullMarked
package io.nereid.backends.pmml;

import org.jspecify.annotations.NullMarked;
