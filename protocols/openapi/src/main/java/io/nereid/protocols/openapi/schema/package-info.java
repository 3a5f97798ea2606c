// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Schemas and examples of the requests and responses of one model. */
@NullMarked
package io.nereid.protocols.openapi.schema;

import org.jspecify.annotations.NullMarked;
