// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Model management: loading, unloading, labels and the model list, as protocols offer them. */
@NullMarked
package io.nereid.spi.management;

import org.jspecify.annotations.NullMarked;
