// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** PaddlePaddle inference models, converted to ONNX. */
@NullMarked
package io.nereid.backends.onnximport.paddle;

import org.jspecify.annotations.NullMarked;
