// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Reads MXNet graphs and converts them to ONNX through Caffe2 operators. */
@NullMarked
package io.nereid.backends.onnximport.mxnet;

import org.jspecify.annotations.NullMarked;
