// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Marks tests that need TensorFlow's library, which the build has only with the profile {@code tensorflow}. */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(Engine.Present.class)
@interface Engine {
    /** Whether the library is on the class path. */
    final class Present implements ExecutionCondition {
        @Override
        public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
            String library = "/org/tensorflow/internal/c_api/linux-x86_64/libtensorflow_cc.so.2";
            if (Engine.class.getResource(library) != null) {
                return ConditionEvaluationResult.enabled("TensorFlow is there");
            }
            System.getLogger(Engine.class.getName())
                    .log(
                            System.Logger.Level.WARNING,
                            "SKIPPED: {0} needs TensorFlow's library (160 MB): ./mvnw -Ptensorflow verify",
                            context.getDisplayName());
            return ConditionEvaluationResult.disabled("TensorFlow's library is absent; build with -Ptensorflow");
        }
    }
}
