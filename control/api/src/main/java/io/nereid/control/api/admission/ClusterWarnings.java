// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import io.nereid.control.api.FieldReader;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.ValidationErrors;
import java.util.List;

/** Warns about fields that have no effect on Kubernetes either, and refuses what does not run there. Stateless. */
final class ClusterWarnings {
    private static final List<String> OF_MODEL_MESH = List.of(
            "grpcEndpoint", "grpcDataEndpoint", "httpDataEndpoint", "replicas", "storageHelper", "builtInAdapter");

    private ClusterWarnings() {}

    static void service(InferenceService service, List<String> warnings) {
        predictor("spec.predictor", service.predictor(), warnings);
        service.canary()
                .forEach(one -> predictor(
                        "spec.canary["
                                + (one.predictor().name() == null
                                        ? ""
                                        : one.predictor().name()) + "].predictor",
                        one.predictor(),
                        warnings));
        if (service.transformer() != null) {
            component("spec.transformer", service.transformer().extension(), warnings);
        }
        if (service.explainer() != null) {
            component("spec.explainer", service.explainer().extension(), warnings);
        }
    }

    /** An explainer in a pod of its own has the predictions of the model, and not the model. */
    static void refused(InferenceService service, ValidationErrors problems) {
        if (service.explainer() != null
                && service.explainer().builtIn() != null
                && service.explainer().builtIn().method().equals("tree_shap")) {
            problems.add(
                    "spec.explainer.nereid.method",
                    "tree_shap needs the trees of the model, which an explainer in a pod of its own does not have; use"
                            + " the method shap, or call :explain at the predictor's host");
        }
    }

    static void runtime(ServingRuntime runtime, List<String> warnings) {
        FieldReader spec = FieldReader.of(runtime.tree()).object("spec");
        for (String field : OF_MODEL_MESH) {
            if (spec.has(field)) {
                warnings.add("spec." + field + " has no effect: it is for ModelMesh");
            }
        }
    }

    private static void predictor(String path, PredictorSpec spec, List<String> warnings) {
        component(path, spec.extension(), warnings);
        if (spec.model() != null
                && spec.model().storage() != null
                && spec.model().storage().schemaPath() != null) {
            warnings.add(path + ".model.storage.schemaPath has no effect: it is for ModelMesh");
        }
    }

    private static void component(String path, ComponentExtensionSpec spec, List<String> warnings) {
        if (spec.batcher() != null && spec.batcher().timeout() != null) {
            warnings.add(path + ".batcher.timeout has no effect, as in KServe; set the component's timeout");
        }
    }
}
