// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** gRPC calls that start inside this process, and copies of message bodies. */
@NullMarked
package io.nereid.control.gateway.inprocess;

import org.jspecify.annotations.NullMarked;
