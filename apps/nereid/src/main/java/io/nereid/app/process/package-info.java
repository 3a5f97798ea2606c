// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** What every command shares of the process: its version, its log and its cache directory. */
@NullMarked
package io.nereid.app.process;

import org.jspecify.annotations.NullMarked;
