// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The storage initializer: downloads models from object stores, registries and web servers into a shared local cache.
 */
@NullMarked
package io.nereid.storage;

import org.jspecify.annotations.NullMarked;
