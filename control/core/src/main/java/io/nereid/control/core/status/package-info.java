// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The status of a service, and the hosts and paths under which clients reach it. */
@NullMarked
package io.nereid.control.core.status;

import org.jspecify.annotations.NullMarked;
