// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Text output of the commands: tables, progress and YAML. */
@NullMarked
package io.nereid.app.text;

import org.jspecify.annotations.NullMarked;
