// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.component;

import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Component;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code nereid explainer}: a built-in explainer as a process of its own, which calls a predictor. */
@Command(
        name = "explainer",
        mixinStandardHelpOptions = true,
        description = {
            "Explains the predictions of a model that another server serves, by calling it over V1.",
            "",
            "This is the container of spec.explainer.nereid of an InferenceService on Kubernetes. --config has the"
                    + " parameters and limits of docs/EXPLAIN.md; a background file in --dir is found by its name."
        },
        footer = {
            "",
            "Try it:",
            "  nereid explainer --method lime --dir background.csv --model_name iris --predictor_host localhost:8000"
        })
@SuppressWarnings("NullAway.Init") // options are set by picocli
public final class ExplainerCommand implements Callable<Integer> {
    @Option(
            names = "--method",
            paramLabel = "NAME",
            defaultValue = "shap",
            description = "The method of requests that name none (default: ${DEFAULT-VALUE}).")
    String method;

    @Mixin
    ComponentOptions options;

    @Override
    public Integer call() throws Exception {
        return options.run(
                Component.EXPLAINER, new Workload.Explainer(method, options.settings(), options.artifacts()));
    }
}
