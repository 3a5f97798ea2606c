// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** What the manager knows about every model and version, and how versions depend on each other. */
@NullMarked
package io.nereid.lifecycle.state;

import org.jspecify.annotations.NullMarked;
