// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The statuses of LLMInferenceServices and their configurations, which are checked and not carried out. */
@NullMarked
package io.nereid.control.core.languagemodel;

import org.jspecify.annotations.NullMarked;
