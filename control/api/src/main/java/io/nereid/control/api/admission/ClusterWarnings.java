// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import io.nereid.control.api.FieldReader;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.ValidationErrors;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.config.InferenceServiceConfig.DeploymentMode;
import java.util.List;

/** Warns about fields that have no effect on Kubernetes either, and refuses what does not run there. Stateless. */
final class ClusterWarnings {
    private static final List<String> OF_MODEL_MESH = List.of(
            "grpcEndpoint", "grpcDataEndpoint", "httpDataEndpoint", "replicas", "storageHelper", "builtInAdapter");

    private static final List<String> OF_ROUTERS = List.of(
            "affinity",
            "tolerations",
            "nodeSelector",
            "nodeName",
            "minReplicas",
            "maxReplicas",
            "scaleTarget",
            "scaleMetric",
            "resources",
            "serviceAccountName");

    private ClusterWarnings() {}

    static void service(
            InferenceService service, DeploymentMode mode, InferenceServiceConfig config, List<String> warnings) {
        warnings.addAll(FieldsWithoutEffect.of(service, mode, config));
        predictor("spec.predictor", service.predictor(), warnings);
        service.canary().forEach(one -> predictor(FieldsWithoutEffect.path(one), one.predictor(), warnings));
        if (service.explainer() != null
                && service.explainer().art() != null
                && service.explainer().art().storage() != null
                && service.explainer().art().storage().schemaPath() != null) {
            warnings.add("spec.explainer.art.storage.schemaPath has no effect: it is for ModelMesh");
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
        if (spec.model() != null
                && spec.model().storage() != null
                && spec.model().storage().schemaPath() != null) {
            warnings.add(path + ".model.storage.schemaPath has no effect: it is for ModelMesh");
        }
    }

    static void graph(FieldReader spec, List<String> warnings) {
        for (String field : OF_ROUTERS) {
            if (spec.has(field)) {
                warnings.add("spec." + field + " has no effect: graphs run in the gateways, without pods of their own");
            }
        }
        for (String field : List.of("serverRead", "serverWrite", "serverIdle")) {
            if (spec.object("routerTimeouts").has(field)) {
                warnings.add("spec.routerTimeouts." + field
                        + " has no effect: the gateways' own limits hold; timeout is for the whole graph,"
                        + " routerTimeouts.serviceClient for one step");
            }
        }
    }
}
