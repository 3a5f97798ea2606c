// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Caffe2 nets, converted to ONNX. */
@NullMarked
package io.nereid.backends.onnximport.caffe2;

import org.jspecify.annotations.NullMarked;
