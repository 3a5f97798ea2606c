// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Answers for equal requests, kept in Redis and shared by all servers that use it. */
@NullMarked
package io.nereid.caches.redis;

import org.jspecify.annotations.NullMarked;
