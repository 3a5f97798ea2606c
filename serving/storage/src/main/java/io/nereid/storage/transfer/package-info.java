// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Resumable download of byte ranges of an object into a file. */
@NullMarked
package io.nereid.storage.transfer;

import org.jspecify.annotations.NullMarked;
