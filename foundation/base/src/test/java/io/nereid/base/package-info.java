// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
@NullMarked
package io.nereid.base;

import org.jspecify.annotations.NullMarked;
