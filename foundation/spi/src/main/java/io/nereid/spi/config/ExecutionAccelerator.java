// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.config;

import java.util.Map;

/**
 * An execution accelerator. Immutable.
 *
 * @param name {@code openvino}, {@code tensorrt}, …
 * @param parameters parameters, which the accelerator interprets
 */
public record ExecutionAccelerator(String name, Map<String, String> parameters) {}
