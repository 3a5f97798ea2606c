// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.options;

import java.util.Map;

/**
 * The response cache. Immutable.
 *
 * @param name the name of the cache, such as {@code local}
 * @param settings settings, which the cache interprets
 */
public record CacheOptions(String name, Map<String, String> settings) {}
