// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The event loop of the control plane, the work queue of its controllers, and the delays of retries. */
@NullMarked
package io.nereid.control.plane.loop;

import org.jspecify.annotations.NullMarked;
