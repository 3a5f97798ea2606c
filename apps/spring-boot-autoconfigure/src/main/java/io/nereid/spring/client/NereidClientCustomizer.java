// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.client;

import io.nereid.client.ClientBuilder;

/**
 * Changes the client that the auto-configuration builds. All beans of this type are called in their order, after the properties
 * were applied.
 *
 * <pre>{@code
 * @Bean
 * NereidClientCustomizer tokens(TokenService tokens) {
 *     return builder -> builder.apiKey(tokens::current);
 * }
 * }</pre>
 */
@FunctionalInterface
public interface NereidClientCustomizer {
    /** Changes the builder. An exception ends the start of the application. */
    void customize(ClientBuilder builder);
}
