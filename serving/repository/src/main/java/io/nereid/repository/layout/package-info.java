// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * What model directories contain: backend, versions, fingerprint and problems of each model, for repositories and for
 * TensorFlow Serving's model list.
 */
@NullMarked
package io.nereid.repository.layout;

import org.jspecify.annotations.NullMarked;
