// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Ensembles: a graph of composing models, its validation and the execution of one request. */
@NullMarked
package io.nereid.engine.ensemble;

import org.jspecify.annotations.NullMarked;
