// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Loading and unloading of versions, from a repository or from the source of an embedding application. */
@NullMarked
package io.nereid.engine.loading;

import org.jspecify.annotations.NullMarked;
