// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import io.nereid.base.ServingException;
import io.nereid.control.api.Container;
import io.nereid.control.api.InferenceService.BuiltInExplainer;
import io.nereid.control.api.InferenceService.ExplainerSpec;
import io.nereid.control.core.Workload.Artifact;
import io.nereid.control.core.Workload.Form;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What explainers run: those that come with the server, or processes. Stateless. */
final class Explainers {
    private static final String REMEDY =
            "; use one that comes with the server (spec.explainer.nereid with a method such as shap), or a container with a "
                    + "command";

    private Explainers() {}

    static Form form(Scene scene, ExplainerSpec spec, Drafts drafts) {
        BuiltInExplainer own = spec.builtIn();
        if (own != null) {
            List<Artifact> artifacts = Storages.artifacts(
                    scene, own.storageUri(), null, spec.storageUris(), null, spec.pod(), spec.storageContainerName());
            return new Workload.Explainer(own.method(), own.config(), artifacts);
        }
        if (spec.art() != null) {
            throw ServingException.invalidArgument(
                    "spec.explainer.art: " + spec.art().type()
                            + " of the Adversarial Robustness Toolbox is not there on one machine" + REMEDY);
        }
        List<Container> containers = Drafts.mainFirst(spec.pod().containers());
        if (containers.isEmpty()) {
            throw ServingException.invalidArgument("spec.explainer: expected nereid, or containers");
        }
        Container main = containers.get(0);
        List<Artifact> artifacts =
                Storages.artifacts(scene, spec.storageUris(), main, spec.pod(), spec.storageContainerName());
        String image = main.image() == null ? "" : main.image();
        if (main.command().isEmpty() && KnownImages.is(image, "nereid/explainer")) {
            Map<String, String> settings = new LinkedHashMap<>(Arguments.of(main.args()));
            String method = settings.remove("method");
            if (method == null) {
                throw ServingException.invalidArgument("spec.explainer.containers[" + main.name()
                        + "].args: --method is missing; expected one such as shap");
            }
            return new Workload.Explainer(method, java.util.Collections.unmodifiableMap(settings), artifacts);
        }
        if (main.command().isEmpty() && KnownImages.lastPart(image).equals("art-explainer")) {
            throw ServingException.invalidArgument("spec.explainer.containers[" + main.name() + "]: the image \""
                    + image + "\" is not run on one machine" + REMEDY);
        }
        return new Workload.Process(
                artifacts,
                drafts.processes(containers, "spec.explainer", Map.of("model_name", scene.name()), "explainer"));
    }
}
