// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The plugin interfaces: backends for inference libraries, and stores for cached responses.
 *
 * <p>A backend describes its models with shapes that exclude the batch dimension where the model is batched
 * ({@code maxBatchSize > 0}), and runs them with tensors whose shapes include it. The guide is
 * {@code docs/WRITING-A-BACKEND.md}.
 */
@NullMarked
package io.nereid.backend;

import org.jspecify.annotations.NullMarked;
