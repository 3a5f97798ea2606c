// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
@NullMarked
package io.nereid.tfdata;

import org.jspecify.annotations.NullMarked;
