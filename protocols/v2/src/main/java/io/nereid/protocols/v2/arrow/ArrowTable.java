// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

import java.util.List;
import java.util.Map;

/**
 * A table that a request holds: columns that are positions in the body, whose values are not copied. Immutable.
 *
 * @param rows the number of rows of all record batches
 * @param columns the columns in the schema's order
 * @param metadata the schema's own keys and values
 */
record ArrowTable(long rows, List<ArrowColumn> columns, Map<String, String> metadata) {}
