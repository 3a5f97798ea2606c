// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * Jars of users and of plugins: their class loaders, the version of the API that they were built for, and the errors
 * of their loading.
 */
@NullMarked
package io.nereid.base.plugin;

import org.jspecify.annotations.NullMarked;
