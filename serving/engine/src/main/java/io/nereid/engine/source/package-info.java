// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Where the models come from: the model list, model repositories and sources of the embedding application. */
@NullMarked
package io.nereid.engine.source;

import org.jspecify.annotations.NullMarked;
