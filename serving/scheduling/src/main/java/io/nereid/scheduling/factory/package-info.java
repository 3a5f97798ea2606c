// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Creates the scheduler that a model's configuration selects. */
@NullMarked
package io.nereid.scheduling.factory;

import org.jspecify.annotations.NullMarked;
