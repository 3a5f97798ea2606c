// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** What a plugin implements: execution technologies, and stores for cached answers. */
@NullMarked
package io.nereid.backend;

import org.jspecify.annotations.NullMarked;
