// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Extraction of tar and zip archives and image layers into a directory that no entry can leave. */
@NullMarked
package io.nereid.storage.archive;

import org.jspecify.annotations.NullMarked;
