// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Marks tests that need TensorFlow Lite's library, which the build has only with the profile {@code tflite}. */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(Engine.Present.class)
@interface Engine {
    /** Whether the library is on the class path. */
    final class Present implements ExecutionCondition {
        @Override
        public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
            String library = "/org/bytedeco/tensorflowlite/linux-x86_64/libjnitensorflowlite.so";
            if (Engine.class.getResource(library) != null) {
                return ConditionEvaluationResult.enabled("TensorFlow Lite is there");
            }
            System.getLogger(Engine.class.getName())
                    .log(
                            System.Logger.Level.WARNING,
                            "SKIPPED: {0} needs the library of TensorFlow Lite (4 MB): ./mvnw -Ptflite verify",
                            context.getDisplayName());
            return ConditionEvaluationResult.disabled("the library of TensorFlow Lite is absent; build with -Ptflite");
        }
    }
}
