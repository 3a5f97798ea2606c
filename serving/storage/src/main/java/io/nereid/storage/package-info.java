// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Brings models from where they are stored to this machine, once. */
@NullMarked
package io.nereid.storage;

import org.jspecify.annotations.NullMarked;
