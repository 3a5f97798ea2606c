// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Runs the steps of an InferenceGraph. */
@NullMarked
package io.nereid.control.graph;

import org.jspecify.annotations.NullMarked;
