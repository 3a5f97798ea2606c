// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The structural schemas of resources, as KServe's CRDs have them: types, defaults, required and unknown fields.
 */
@NullMarked
package io.nereid.control.api.schema;

import org.jspecify.annotations.NullMarked;
