// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Serves OpenAPI documents of the HTTP routes of a server, and of each of its models. */
@NullMarked
package io.nereid.protocols.openapi;

import org.jspecify.annotations.NullMarked;
