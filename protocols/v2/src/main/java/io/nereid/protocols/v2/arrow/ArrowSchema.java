// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

import java.util.List;
import java.util.Map;

/**
 * The schema of a table. Immutable.
 *
 * @param fields the columns in their order
 * @param metadata the schema's own keys and values
 */
record ArrowSchema(List<ArrowField> fields, Map<String, String> metadata) {}
