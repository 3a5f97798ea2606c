// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The operator: watches the resources of a cluster, and carries out plans in it. */
@NullMarked
package io.nereid.control.operator;

import org.jspecify.annotations.NullMarked;
