// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The content-addressed cache on disk: entries by digest, leases, quota and eviction. */
@NullMarked
package io.nereid.storage.cache;

import org.jspecify.annotations.NullMarked;
