// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.management;

/**
 * Which requests are logged, and where. Immutable.
 *
 * @param type the file format: {@code tfrecord}, or empty for the same
 * @param filePrefix the path and the beginning of the files' names
 * @param samplingRate the fraction of the requests, 0 to 1
 */
public record LoggingConfig(String type, String filePrefix, double samplingRate) {}
