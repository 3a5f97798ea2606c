// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Turns Caffe2's nets, and MXNet's graphs said in the same operators, into ONNX models, which another backend runs. */
@NullMarked
package io.nereid.backends.caffe2;

import org.jspecify.annotations.NullMarked;
