// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The runtimes that models can be served with, and the selection of one for a model. */
@NullMarked
package io.nereid.control.core.runtime;

import org.jspecify.annotations.NullMarked;
