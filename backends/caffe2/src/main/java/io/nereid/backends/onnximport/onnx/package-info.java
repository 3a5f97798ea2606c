// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The ONNX graph that a model is converted to, and its hand-over to the ONNX Runtime backend. */
@NullMarked
package io.nereid.backends.onnximport.onnx;

import org.jspecify.annotations.NullMarked;
