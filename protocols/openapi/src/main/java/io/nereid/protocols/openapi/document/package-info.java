// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Composes the documents from the routes of the protocols and their descriptions. */
@NullMarked
package io.nereid.protocols.openapi.document;

import org.jspecify.annotations.NullMarked;
