// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** A directory that is the target of fetches: it holds the files of models under their own names. */
@NullMarked
package io.nereid.storage.directory;

import org.jspecify.annotations.NullMarked;
