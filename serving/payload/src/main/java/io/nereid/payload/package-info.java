// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Requests and answers as CloudEvents, to HTTP sinks and to files. */
@NullMarked
package io.nereid.payload;

import org.jspecify.annotations.NullMarked;
