// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The dashboard command: models, rates, latencies and queues of a running server in a terminal. */
@NullMarked
package io.nereid.app.top;

import org.jspecify.annotations.NullMarked;
