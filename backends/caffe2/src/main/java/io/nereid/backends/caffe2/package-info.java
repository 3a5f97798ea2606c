// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Turns Caffe2's nets, MXNet's graphs said in the same operators, and PaddlePaddle's programs into ONNX models. */
@NullMarked
package io.nereid.backends.caffe2;

import org.jspecify.annotations.NullMarked;
