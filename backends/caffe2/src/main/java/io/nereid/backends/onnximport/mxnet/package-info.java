// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** MXNet graphs, converted to ONNX by way of Caffe2 operators. */
@NullMarked
package io.nereid.backends.onnximport.mxnet;

import org.jspecify.annotations.NullMarked;
