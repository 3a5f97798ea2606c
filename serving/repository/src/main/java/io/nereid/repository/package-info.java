// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Model storage: layout of a repository, configuration readers, and the source that says which versions to serve. */
@NullMarked
package io.nereid.repository;

import org.jspecify.annotations.NullMarked;
