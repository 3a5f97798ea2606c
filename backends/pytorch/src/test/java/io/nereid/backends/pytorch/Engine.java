// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Marks tests that need libtorch, which the build has only with the profile {@code pytorch}. */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(Engine.Present.class)
@interface Engine {
    /** Whether the library is on the class path. */
    final class Present implements ExecutionCondition {
        @Override
        public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
            String library = "/pytorch/cpu/linux-x86_64/libtorch_cpu.so";
            if (Engine.class.getResource(library) != null) {
                return ConditionEvaluationResult.enabled("PyTorch is there");
            }
            System.getLogger(Engine.class.getName())
                    .log(
                            System.Logger.Level.WARNING,
                            "SKIPPED: {0} needs PyTorch's library (110 MB): ./mvnw -Ppytorch verify",
                            context.getDisplayName());
            return ConditionEvaluationResult.disabled("PyTorch's library is absent; build with -Ppytorch");
        }
    }
}
