// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Validation and conversion of requests before they are queued, and of responses after the run. */
@NullMarked
package io.nereid.engine.request;

import org.jspecify.annotations.NullMarked;
