// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** TensorFlow Lite's models on TensorFlow Lite, called through its C interface; a plugin. */
@NullMarked
package io.nereid.backends.tflite;

import org.jspecify.annotations.NullMarked;
