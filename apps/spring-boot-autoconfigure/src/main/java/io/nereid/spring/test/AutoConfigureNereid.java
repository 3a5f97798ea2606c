// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.test;

import io.nereid.spring.client.NereidClientAutoConfiguration;
import io.nereid.spring.embedded.NereidEmbeddedAutoConfiguration;
import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;

/**
 * Adds the models, and the client, of the application's properties to a test of a part of it, which has few
 * auto-configurations of its own.
 *
 * <pre>{@code
 * @WebMvcTest(FlowerController.class)
 * @AutoConfigureNereid
 * class FlowerControllerTest {}
 * }</pre>
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Documented
@Inherited
@ImportAutoConfiguration({NereidEmbeddedAutoConfiguration.class, NereidClientAutoConfiguration.class})
public @interface AutoConfigureNereid {}
