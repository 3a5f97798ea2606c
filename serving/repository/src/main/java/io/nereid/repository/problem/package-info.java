// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * Problems found in a repository, the places in files that they point to, and the reading of text files with limits.
 */
@NullMarked
package io.nereid.repository.problem;

import org.jspecify.annotations.NullMarked;
