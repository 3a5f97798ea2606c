// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The configuration of a model in Triton's terms: tensors, batching, sequences, ensembles, instance groups, warm-up.
 * Where {@code maxBatchSize > 0}, shapes exclude the batch dimension.
 */
@NullMarked
package io.nereid.spi.config;

import org.jspecify.annotations.NullMarked;
