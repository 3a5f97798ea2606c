// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** From the numbers of an encoder to the answers of its task. */
@NullMarked
package io.nereid.backends.huggingface.task;

import org.jspecify.annotations.NullMarked;
