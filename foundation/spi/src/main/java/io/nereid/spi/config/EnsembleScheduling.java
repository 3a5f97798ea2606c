// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.config;

import java.util.List;

/**
 * The steps of an ensemble. Immutable.
 *
 * @param steps in the order of the configuration; the order of execution follows from the tensors
 * @param maxInflight the most requests of one step in flight for one request of the ensemble; 0 for no limit
 */
public record EnsembleScheduling(List<EnsembleStep> steps, int maxInflight) {}
