// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The audit log: who did what, to which model, from where, and with which outcome. */
@NullMarked
package io.nereid.access.audit;

import org.jspecify.annotations.NullMarked;
