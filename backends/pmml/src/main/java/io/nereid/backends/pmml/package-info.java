// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Serves models in PMML, the XML exchange format of statistics and data mining tools. */
@NullMarked
package io.nereid.backends.pmml;

import org.jspecify.annotations.NullMarked;
