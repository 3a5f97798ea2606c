// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Models that are downloaded into the cache of this machine before a service needs them. */
@NullMarked
package io.nereid.control.local.localmodel;

import org.jspecify.annotations.NullMarked;
