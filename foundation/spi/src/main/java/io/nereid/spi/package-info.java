// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * Value types and interfaces that the engine, the protocols and plugins share: requests, responses, model
 * configuration, model control. No behaviour beyond the validation of values.
 *
 * <p><b>The batch dimension.</b> A model is batched where {@code maxBatchSize > 0}. Then
 *
 * <ul>
 *   <li>the shape of a {@link io.nereid.tensor.Tensor} always includes the batch dimension: it describes the data, in
 *       requests, responses and runs;
 *   <li>shapes that clients read include it as -1: {@link io.nereid.spi.ModelMetadata}, and the signatures in it;
 *   <li>shapes of a configuration exclude it: {@link io.nereid.spi.config}, and the signatures of a backend's model.
 * </ul>
 */
@NullMarked
package io.nereid.spi;

import org.jspecify.annotations.NullMarked;
