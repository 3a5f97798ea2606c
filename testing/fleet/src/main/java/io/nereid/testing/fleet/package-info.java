// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * A pool of pods in virtual time: thousands of models with skewed and shifting traffic, pods that are lost, join and go. The
 * placement of Nereid runs beside plain LRU caches behind modulo hashing, and beside the rules of ModelMesh.
 */
@NullMarked
package io.nereid.testing.fleet;

import org.jspecify.annotations.NullMarked;
