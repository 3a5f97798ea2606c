// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Finding the route of a request line: route table, request line, percent-encoding. */
@NullMarked
package io.nereid.transport.routing;

import org.jspecify.annotations.NullMarked;
