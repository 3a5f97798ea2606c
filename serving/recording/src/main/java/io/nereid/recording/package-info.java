// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * Request logging as in TensorFlow Serving: samples of requests and responses in TFRecord files, for warm-up, load
 * tests and comparisons.
 */
@NullMarked
package io.nereid.recording;

import org.jspecify.annotations.NullMarked;
