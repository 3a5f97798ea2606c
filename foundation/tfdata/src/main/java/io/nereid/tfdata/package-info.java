// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** TensorFlow's data formats without TensorFlow: TensorProto, Example, PredictionLog, TFRecord files. */
@NullMarked
package io.nereid.tfdata;

import org.jspecify.annotations.NullMarked;
