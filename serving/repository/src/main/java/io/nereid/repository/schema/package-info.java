// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The fields of configuration messages, and the binding of a parsed text or JSON document to them. */
@NullMarked
package io.nereid.repository.schema;

import org.jspecify.annotations.NullMarked;
