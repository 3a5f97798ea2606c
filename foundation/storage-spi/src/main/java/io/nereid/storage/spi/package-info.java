// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The contract of a storage provider: listing the objects of a store, reading ranges of them, and writing objects.
 */
@NullMarked
package io.nereid.storage.spi;

import org.jspecify.annotations.NullMarked;
