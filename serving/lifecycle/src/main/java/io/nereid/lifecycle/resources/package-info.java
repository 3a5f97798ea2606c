// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Memory and processor time of loads. */
@NullMarked
package io.nereid.lifecycle.resources;

import org.jspecify.annotations.NullMarked;
