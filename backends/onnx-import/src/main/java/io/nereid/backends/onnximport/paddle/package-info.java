// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Reads PaddlePaddle inference models and converts them to ONNX. */
@NullMarked
package io.nereid.backends.onnximport.paddle;

import org.jspecify.annotations.NullMarked;
