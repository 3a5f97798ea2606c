// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.embedded;

import java.util.List;
import java.util.Map;
import org.springframework.boot.autoconfigure.condition.ConditionMessage;
import org.springframework.boot.autoconfigure.condition.ConditionOutcome;
import org.springframework.boot.autoconfigure.condition.SpringBootCondition;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotatedTypeMetadata;

/** Matches when the properties name a model or a repository. */
final class OnEmbeddedModels extends SpringBootCondition {
    private static final String MODELS = "nereid.embedded.models";
    private static final String REPOSITORIES = "nereid.embedded.repositories";

    @Override
    public ConditionOutcome getMatchOutcome(ConditionContext context, AnnotatedTypeMetadata metadata) {
        ConditionMessage.Builder message = ConditionMessage.forCondition("Embedded models");
        Environment environment = context.getEnvironment();
        if (!models(environment).isEmpty()) {
            return ConditionOutcome.match(message.foundExactly(MODELS));
        }
        if (!Binder.get(environment)
                .bind(REPOSITORIES, Bindable.listOf(String.class))
                .orElse(List.of())
                .isEmpty()) {
            return ConditionOutcome.match(message.foundExactly(REPOSITORIES));
        }
        return ConditionOutcome.noMatch(message.because("neither " + MODELS + " nor " + REPOSITORIES + " is set"));
    }

    /** The models of the properties by name, before they are converted. */
    static Map<String, Object> models(Environment environment) {
        return Binder.get(environment)
                .bind(MODELS, Bindable.mapOf(String.class, Object.class))
                .orElse(Map.of());
    }
}
