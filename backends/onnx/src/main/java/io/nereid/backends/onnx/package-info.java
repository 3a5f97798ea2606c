// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The ONNX Runtime backend: loads ONNX models and TensorRT plans, and runs them with ONNX Runtime's Java API. */
@NullMarked
package io.nereid.backends.onnx;

import org.jspecify.annotations.NullMarked;
