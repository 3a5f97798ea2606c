// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.component;

import io.nereid.base.ServingException;
import io.nereid.control.api.CommandLineArguments;
import io.nereid.control.api.Container;
import io.nereid.control.api.InferenceService.BuiltInExplainer;
import io.nereid.control.api.InferenceService.ExplainerSpec;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Artifact;
import io.nereid.control.core.Workload.Form;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Plans explainers: an explainer that is built into the server, or processes. Stateless. */
final class ExplainerPlanner {
    private static final String REMEDY =
            "; use a built-in explainer (spec.explainer.nereid with a method such as shap), or a container with a"
                    + " command";

    private ExplainerPlanner() {}

    static Form form(PlanningContext context, ExplainerSpec spec, ComponentPlanner planner) {
        BuiltInExplainer own = spec.builtIn();
        if (own != null) {
            List<Artifact> artifacts = StorageArtifacts.artifacts(
                    context, own.storageUri(), null, spec.storageUris(), null, spec.pod(), spec.storageContainerName());
            return new Workload.Explainer(own.method(), own.config(), artifacts);
        }
        if (spec.art() != null) {
            throw ServingException.invalidArgument(
                    "spec.explainer.art: " + spec.art().type()
                            + " of the Adversarial Robustness Toolbox is not available on one machine" + REMEDY);
        }
        List<Container> containers = ComponentPlanner.mainFirst(spec.pod().containers());
        if (containers.isEmpty()) {
            throw ServingException.invalidArgument("spec.explainer: expected nereid, or containers");
        }
        Container main = containers.get(0);
        List<Artifact> artifacts =
                StorageArtifacts.artifacts(context, spec.storageUris(), main, spec.pod(), spec.storageContainerName());
        String image = main.image() == null ? "" : main.image();
        if (main.command().isEmpty() && ModelServerImages.is(image, "nereid/explainer")) {
            Map<String, String> settings = new LinkedHashMap<>(CommandLineArguments.of(main.args()));
            String method = settings.remove("method");
            if (method == null) {
                throw ServingException.invalidArgument("spec.explainer.containers[" + main.name()
                        + "].args: --method is missing; expected one such as shap");
            }
            return new Workload.Explainer(method, java.util.Collections.unmodifiableMap(settings), artifacts);
        }
        if (main.command().isEmpty() && ModelServerImages.lastPart(image).equals("art-explainer")) {
            throw ServingException.invalidArgument("spec.explainer.containers[" + main.name() + "]: the image \""
                    + image + "\" is not run on one machine" + REMEDY);
        }
        return new Workload.Process(
                artifacts,
                planner.processes(containers, "spec.explainer", Map.of("model_name", context.name()), "explainer"));
    }
}
