// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Reads Caffe2 nets and converts them to ONNX. */
@NullMarked
package io.nereid.backends.onnximport.caffe2;

import org.jspecify.annotations.NullMarked;
