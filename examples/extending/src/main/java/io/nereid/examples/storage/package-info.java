// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** A complete storage provider, as a plugin: a directory of a web server that a list of checksums describes. */
@NullMarked
package io.nereid.examples.storage;

import org.jspecify.annotations.NullMarked;
