// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Training runs for class-data sharing. */
@NullMarked
package io.nereid.app.cds;

import org.jspecify.annotations.NullMarked;
