// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The settings of the OpenAPI documents. */
@NullMarked
package io.nereid.protocols.openapi.options;

import org.jspecify.annotations.NullMarked;
