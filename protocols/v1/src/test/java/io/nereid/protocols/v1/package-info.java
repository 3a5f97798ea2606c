// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
@NullMarked
package io.nereid.protocols.v1;

import org.jspecify.annotations.NullMarked;
