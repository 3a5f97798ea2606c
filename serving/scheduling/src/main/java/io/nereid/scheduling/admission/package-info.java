// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Which requests a queue accepts: policies, without queues and threads. */
@NullMarked
package io.nereid.scheduling.admission;

import org.jspecify.annotations.NullMarked;
