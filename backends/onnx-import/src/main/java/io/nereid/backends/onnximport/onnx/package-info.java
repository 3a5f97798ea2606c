// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Builds the ONNX graph that a model is converted to, and delegates it to the ONNX Runtime backend. */
@NullMarked
package io.nereid.backends.onnximport.onnx;

import org.jspecify.annotations.NullMarked;
