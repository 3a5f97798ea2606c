// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
@NullMarked
package io.nereid.payload;

import org.jspecify.annotations.NullMarked;
