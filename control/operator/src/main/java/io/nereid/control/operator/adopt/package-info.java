// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** What a take-over of a cluster from KServe's controller changes, and the switch from one to the other. */
@NullMarked
package io.nereid.control.operator.adopt;

import org.jspecify.annotations.NullMarked;
