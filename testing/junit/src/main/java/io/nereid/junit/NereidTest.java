// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.junit;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Loads models for the tests of a class, before the first and until after the last one. Methods and constructors may have
 * parameters of the types {@link io.nereid.embedded.Nereid}, {@link io.nereid.embedded.Model} (with {@link ModelName} where
 * there are several) and, with {@link #server}, {@link io.nereid.embedded.server.EmbeddedServer}. Needs no container engine
 * and no network. Paths are relative to the working directory of the tests, which in Maven and Gradle is the module's
 * folder; <code>${name}</code> in a path stands for a system property.
 *
 * <pre>{@code
 * @NereidTest(models = "iris=src/test/models/iris.onnx", server = true)
 * class ClassifierTest {
 *     @Test
 *     void classifies(Model iris) {
 *         assertEquals(0, iris.predict(new float[][] {{5.1f, 3.5f, 1.4f, 0.2f}}).longs("label")[0]);
 *     }
 *
 *     @Test
 *     void callsTheServer(EmbeddedServer server) {
 *         new Classifier("http://localhost:" + server.port()).classify(...);
 *     }
 * }
 * }</pre>
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.TYPE)
@ExtendWith(NereidExtension.class)
public @interface NereidTest {
    /** Models, each {@code NAME=PATH} of a file or folder. */
    String[] models() default {};

    /** Repositories in Triton's or TensorFlow Serving's layout. */
    String[] repositories() default {};

    /** Whether a port of the loopback address serves the models, for the application's own clients. */
    boolean server() default false;
}
