// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The configuration of a model in Triton's terms: tensors, batching, sequences, ensembles, instance groups, warm-up.
 */
@NullMarked
package io.nereid.spi.config;

import org.jspecify.annotations.NullMarked;
