// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Parser of protobuf's text format: from characters to a tree without types. */
@NullMarked
package io.nereid.repository.textformat;

import org.jspecify.annotations.NullMarked;
