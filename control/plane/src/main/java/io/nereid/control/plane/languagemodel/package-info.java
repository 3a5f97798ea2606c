// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The controller of LLMInferenceServices and their configurations: the same on one machine and in a cluster. */
@NullMarked
package io.nereid.control.plane.languagemodel;

import org.jspecify.annotations.NullMarked;
