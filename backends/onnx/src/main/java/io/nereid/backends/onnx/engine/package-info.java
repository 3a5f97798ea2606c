// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** TensorRT's engines: the cache of those that ONNX Runtime builds, and plans, which are engines that were built before. */
@NullMarked
package io.nereid.backends.onnx.engine;

import org.jspecify.annotations.NullMarked;
