// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Scanning and polling of model directories, and emission of aspired versions with their loaders. */
@NullMarked
package io.nereid.repository.polling;

import org.jspecify.annotations.NullMarked;
