// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** How many replicas a revision needs, as pure functions. */
@NullMarked
package io.nereid.control.autoscaling;

import org.jspecify.annotations.NullMarked;
