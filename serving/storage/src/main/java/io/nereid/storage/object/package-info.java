// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * Objects of a store: listings, paths, glob filters, checksums, and the interfaces that every provider implements.
 */
@NullMarked
package io.nereid.storage.object;

import org.jspecify.annotations.NullMarked;
