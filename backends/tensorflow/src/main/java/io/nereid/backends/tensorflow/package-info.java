// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** TensorFlow's SavedModels and graphs on TensorFlow, called through its C interface; a plugin. */
@NullMarked
package io.nereid.backends.tensorflow;

import org.jspecify.annotations.NullMarked;
