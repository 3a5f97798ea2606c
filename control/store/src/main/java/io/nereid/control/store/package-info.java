// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Resources kept on disk, every acknowledged change of them. */
@NullMarked
package io.nereid.control.store;

import org.jspecify.annotations.NullMarked;
