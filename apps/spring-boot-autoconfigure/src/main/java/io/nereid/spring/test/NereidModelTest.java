// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.test;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.AliasFor;

/**
 * A test of the application's models alone: the models of its properties, and none of its other beans. Classes that the test
 * needs besides come by {@code @Import}.
 *
 * <pre>{@code
 * @NereidModelTest(properties = "nereid.embedded.models.iris.path=src/test/models/iris.onnx")
 * class IrisModelTest {
 *     @Autowired Model iris;
 * }
 * }</pre>
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Documented
@Inherited
@SpringBootTest(classes = NereidModelTest.Models.class, webEnvironment = SpringBootTest.WebEnvironment.NONE)
@AutoConfigureNereid
public @interface NereidModelTest {
    /** Properties as {@code key=value}, which go before those of the application. */
    @AliasFor(annotation = SpringBootTest.class, attribute = "properties")
    String[] properties() default {};

    /** The context of the test, without beans of its own. */
    @Configuration(proxyBeanMethods = false)
    class Models {}
}
