// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.embedded;

import io.nereid.base.ServingException;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Says why the models kept an application from starting, instead of a stack trace. */
final class ModelFailureAnalyzer extends AbstractFailureAnalyzer<ServingException> {
    @Override
    protected @Nullable FailureAnalysis analyze(Throwable rootFailure, ServingException cause) {
        String remedy = cause.remedy();
        return new FailureAnalysis(
                "Nereid: " + cause.getMessage(),
                remedy == null || remedy.isEmpty()
                        ? "Correct the models, or the properties below nereid.embedded."
                        : remedy,
                cause);
    }
}
