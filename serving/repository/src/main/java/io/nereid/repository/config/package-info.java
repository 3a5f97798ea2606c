// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Triton's model configuration: reading, validation and normalized output of config.pbtxt and its JSON form. */
@NullMarked
package io.nereid.repository.config;

import org.jspecify.annotations.NullMarked;
