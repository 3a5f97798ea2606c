// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Builds the ONNX graphs of encoders, with ONNX Runtime's fused operators and the weights where they are. */
@NullMarked
package io.nereid.backends.huggingface.graph;

import org.jspecify.annotations.NullMarked;
