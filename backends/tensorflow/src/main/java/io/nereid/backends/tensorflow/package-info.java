// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The TensorFlow backend: runs SavedModels and GraphDefs through TensorFlow's C API. A plugin. */
@NullMarked
package io.nereid.backends.tensorflow;

import org.jspecify.annotations.NullMarked;
