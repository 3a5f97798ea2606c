// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.local;

import io.nereid.base.ServingException;
import io.nereid.control.api.Container;
import io.nereid.control.api.InferenceService.BuiltInExplainer;
import io.nereid.control.api.InferenceService.ExplainerSpec;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Artifact;
import io.nereid.control.core.Workload.Form;
import io.nereid.control.core.component.BuiltInExplainers;
import io.nereid.control.core.component.ComponentPlan;
import io.nereid.control.core.component.ModelServerImages;
import java.util.List;

/** Plans explainers: an explainer that is built into the server, or processes. Stateless. */
final class ExplainerForms {
    private static final String REMEDY =
            "; use a built-in explainer (spec.explainer.nereid with a method such as shap), or a container with a"
                    + " command";

    private ExplainerForms() {}

    static Form form(ComponentPlan plan, ExplainerSpec spec, LocalForms planner) {
        BuiltInExplainer own = BuiltInExplainers.of(plan, spec);
        List<Artifact> artifacts = plan.artifacts();
        if (own != null) {
            return new Workload.Explainer(own.method(), own.config(), artifacts);
        }
        if (spec.art() != null) {
            throw ServingException.invalidArgument(
                    "spec.explainer.art: " + spec.art().type()
                            + " of the Adversarial Robustness Toolbox is not available on one machine" + REMEDY);
        }
        List<Container> containers = LocalForms.mainFirst(plan.pod().containers());
        Container main = containers.get(0);
        String image = main.image() == null ? "" : main.image();
        if (main.command().isEmpty() && ModelServerImages.lastPart(image).equals("art-explainer")) {
            throw ServingException.invalidArgument("spec.explainer.containers[" + main.name() + "]: the image \""
                    + image + "\" is not run on one machine" + REMEDY);
        }
        return new Workload.Process(
                artifacts, planner.processes(containers, "spec.explainer", plan.arguments(), "explainer"));
    }
}
