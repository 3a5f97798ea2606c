// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The plugin interfaces: backends for inference libraries, and stores for cached responses. */
@NullMarked
package io.nereid.backend;

import org.jspecify.annotations.NullMarked;
