// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Writes requests and their answers down, to be used as warm-up, as load and for comparison. */
@NullMarked
package io.nereid.recording;

import org.jspecify.annotations.NullMarked;
