// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * Transformers in Java: pre- and postprocessing steps around a model, loaded from a user's jar. Contains the interfaces
 * that the jar implements and the code that runs it.
 */
@NullMarked
package io.nereid.transform;

import org.jspecify.annotations.NullMarked;
