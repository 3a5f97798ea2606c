// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The replay command: sends recorded requests again and compares the responses. */
@NullMarked
package io.nereid.app.replay;

import org.jspecify.annotations.NullMarked;
