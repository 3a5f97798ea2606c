// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.config;

import java.util.Map;

/**
 * A warm-up sample: requests that run before a version becomes available. Immutable.
 *
 * @param name a name for log messages
 * @param batchSize rows per request; 0 disables the sample
 * @param count how often it runs
 * @param inputs by input name
 */
public record WarmupSample(String name, int batchSize, int count, Map<String, WarmupInput> inputs) {}
