// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The models of the backends: one class for each, which computes. */
@NullMarked
package io.nereid.samples.model;

import org.jspecify.annotations.NullMarked;
