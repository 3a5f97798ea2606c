// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * Where a revision's requests go: models, child processes or handlers, how a process is chosen, and how protocols are
 * translated.
 */
@NullMarked
package io.nereid.control.gateway.upstream;

import org.jspecify.annotations.NullMarked;
