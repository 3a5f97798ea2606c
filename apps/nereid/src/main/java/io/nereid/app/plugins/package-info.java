// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Backends, storage providers and response caches, built in or installed as plugins: discovery, class loading and installation. */
@NullMarked
package io.nereid.app.plugins;

import org.jspecify.annotations.NullMarked;
