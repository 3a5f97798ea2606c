// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The sources of models: a Triton model repository, TensorFlow Serving's model list, and models that a control plane
 * manages.
 */
@NullMarked
package io.nereid.repository;

import org.jspecify.annotations.NullMarked;
