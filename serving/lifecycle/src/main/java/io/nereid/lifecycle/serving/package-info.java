// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** What request threads read without a lock: available versions, label routes and reference counts. */
@NullMarked
package io.nereid.lifecycle.serving;

import org.jspecify.annotations.NullMarked;
