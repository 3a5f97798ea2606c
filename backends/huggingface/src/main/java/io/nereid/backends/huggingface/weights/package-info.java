// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The weights of a checkpoint: where each one is in the files of a folder. */
@NullMarked
package io.nereid.backends.huggingface.weights;

import org.jspecify.annotations.NullMarked;
