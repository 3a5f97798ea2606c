// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** ONNX models, run by ONNX Runtime. */
@NullMarked
package io.nereid.backends.onnx;

import org.jspecify.annotations.NullMarked;
