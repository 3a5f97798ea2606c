// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.config;

import java.util.Map;

/**
 * One step of an ensemble. Immutable.
 *
 * @param model the composing model
 * @param version its version, or -1 for the latest
 * @param inputs ensemble tensors by the model's input
 * @param outputs ensemble tensors by the model's output
 * @param when the name of a boolean ensemble tensor, or empty; the step is skipped when the tensor is absent or
 *     contains a false element
 */
public record EnsembleStep(
        String model, long version, Map<String, String> inputs, Map<String, String> outputs, String when) {}
