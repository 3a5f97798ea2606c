// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.junit;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** The name of the model for a parameter of a test, where there are several. */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.PARAMETER)
public @interface ModelName {
    /** The model's name. */
    String value();
}
