// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.embedded;

import io.nereid.embedded.Nereid;

/**
 * Changes what the auto-configuration builds: options of the engine, listeners, further models. All beans of this type are
 * called in their order, after the properties were applied, on the thread that starts the application.
 *
 * <pre>{@code
 * @Bean
 * NereidBuilderCustomizer twoThreads() {
 *     return builder -> builder.engine(options -> options.deviceThreads(2));
 * }
 * }</pre>
 */
@FunctionalInterface
public interface NereidBuilderCustomizer {
    /** Changes the builder. An exception ends the start of the application. */
    void customize(Nereid.Builder builder);
}
