// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** HTTP exchanges independent of the protocol version: routes, virtual hosts, dispatch, in-process exchanges. */
@NullMarked
package io.nereid.transport.exchange;

import org.jspecify.annotations.NullMarked;
