// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The commands that use the inference API of a running server, and its client. */
@NullMarked
package io.nereid.app.client;

import org.jspecify.annotations.NullMarked;
