// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The TensorFlow Lite backend: runs {@code .tflite} models through TensorFlow Lite's C API. A plugin. */
@NullMarked
package io.nereid.backends.tflite;

import org.jspecify.annotations.NullMarked;
