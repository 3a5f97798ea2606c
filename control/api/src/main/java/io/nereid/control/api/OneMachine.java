// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.control.api.InferenceService.CanarySpec;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.api.InferenceService.Metric;
import io.nereid.control.api.InferenceService.ModelSpec;
import io.nereid.control.api.InferenceService.PredictorSpec;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;

/** Says which fields have no effect on one machine. Confined to one admission. */
final class OneMachine {
    /** What speaks of nodes, of a cluster's network and of isolation. */
    private static final List<String> POD_FIELDS = List.of(
            "nodeSelector",
            "affinity",
            "tolerations",
            "topologySpreadConstraints",
            "schedulerName",
            "schedulingGates",
            "priorityClassName",
            "priority",
            "preemptionPolicy",
            "nodeName",
            "imagePullSecrets",
            "runtimeClassName",
            "hostNetwork",
            "hostPID",
            "hostIPC",
            "hostUsers",
            "hostname",
            "hostnameOverride",
            "subdomain",
            "setHostnameAsFQDN",
            "hostAliases",
            "dnsPolicy",
            "dnsConfig",
            "shareProcessNamespace",
            "securityContext",
            "readinessGates",
            "resourceClaims",
            "overhead",
            "os",
            "ephemeralContainers",
            "restartPolicy",
            "activeDeadlineSeconds",
            "enableServiceLinks",
            "resources");

    private static final List<String> CONTAINER_FIELDS = List.of(
            "imagePullPolicy",
            "securityContext",
            "volumeDevices",
            "stdin",
            "stdinOnce",
            "tty",
            "terminationMessagePath",
            "terminationMessagePolicy",
            "resizePolicy",
            "restartPolicy",
            "restartPolicyRules");

    /** What is of the image's server, when the engine takes its place. */
    private static final Set<String> ENGINE_FIELDS = Set.of(
            "image",
            "command",
            "workingDir",
            "ports",
            "volumeMounts",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
            "lifecycle",
            "envFrom");

    private static final String STORAGE_SECRET = "serving.kserve.io/storageSecretName";
    private static final String NO_EFFECT = " has no effect on one machine";

    /** Images whose place this server takes, whatever their registry and tag; the planner has the same. */
    private static final Pattern KNOWN = Pattern.compile(
            "(.*/)?(sklearnserver|xgbserver|lgbserver|predictiveserver|pmmlserver|paddleserver|mlserver|tritonserver"
                    + "|torchserve|torchserve-kfs|pytorch-serve|tensorflow-serving|tensorflow/serving|tensorflow/serving-gpu"
                    + "|openvino/model_server|nereid/nereid|nereid/explainer)([:@].*)?",
            Pattern.CASE_INSENSITIVE);

    private final List<String> warnings;

    OneMachine(List<String> warnings) {
        this.warnings = warnings;
    }

    void service(InferenceService service) {
        if (service.metadata().annotations().containsKey(STORAGE_SECRET)) {
            warnings.add("the annotation " + STORAGE_SECRET + NO_EFFECT
                    + ": credentials.storageSpecSecretName of inferenceservice-config names the secret");
        }
        predictor("spec.predictor", service.predictor());
        for (int i = 0; i < service.canary().size(); i++) {
            CanarySpec canary = service.canary().get(i);
            predictor("spec.canary[" + i + "].predictor", canary.predictor());
        }
        if (service.transformer() != null) {
            component(
                    "spec.transformer",
                    service.transformer().extension(),
                    service.transformer().pod());
        }
        if (service.explainer() != null) {
            component(
                    "spec.explainer",
                    service.explainer().extension(),
                    service.explainer().pod());
            if (service.explainer().art() != null) {
                warnings.add("spec.explainer.art runs from an image, which one machine does not do; write nereid:"
                        + " {method: shap}, or containers with a command");
            }
        }
    }

    void runtime(ServingRuntime runtime) {
        if (!runtime.multiModel() && runtime.pod().container(InferenceService.MAIN_CONTAINER) == null) {
            warnings.add("spec.containers has none of the name " + InferenceService.MAIN_CONTAINER
                    + "; services cannot use this runtime");
        }
        Fields spec = Fields.of(runtime.tree()).object("spec");
        for (String field : List.of(
                "grpcEndpoint",
                "grpcDataEndpoint",
                "httpDataEndpoint",
                "replicas",
                "storageHelper",
                "builtInAdapter")) {
            if (spec.has(field)) {
                warnings.add("spec." + field + " has no effect: it is for ModelMesh");
            }
        }
        pod(spec);
        for (int i = 0; i < runtime.pod().containers().size(); i++) {
            container("spec.containers[" + i + "]", runtime.pod().containers().get(i));
        }
    }

    private void predictor(String path, PredictorSpec predictor) {
        component(path, predictor.extension(), predictor.pod());
        if (predictor.workerSpec() != null) {
            warnings.add(path + ".workerSpec" + NO_EFFECT + ": there are no workers");
        }
        ModelSpec model = predictor.model();
        if (model == null) {
            return;
        }
        if (model.storageUri() == null
                && model.storage() == null
                && predictor.storageUris().isEmpty()) {
            warnings.add(path + ".model names no storage (storageUri, storage), so that there is nothing to load");
        }
        if (model.confidential() != null && model.confidential().enabled()) {
            String uri = model.storageUri();
            warnings.add(path + ".model.confidential"
                    + (uri != null && (uri.startsWith("oci://") || uri.startsWith("pvc://"))
                            ? " has no effect for oci:// and pvc://"
                            : NO_EFFECT + ": files are read as they are"));
        }
        if (model.storage() != null && model.storage().schemaPath() != null) {
            warnings.add(path + ".model.storage.schemaPath" + NO_EFFECT + ": it is for ModelMesh");
        }
        container(path + ".model", model.container());
    }

    private void component(String path, ComponentExtensionSpec spec, PodSpec pod) {
        Fields fields = new Fields(pod.tree(), path);
        pod(fields);
        if (spec.deploymentStrategy() != null) {
            warnings.add(path + ".deploymentStrategy" + NO_EFFECT + ": a revision takes over when it is ready");
        }
        if (spec.autoScaling() != null) {
            for (int i = 0; i < spec.autoScaling().metrics().size(); i++) {
                Metric metric = spec.autoScaling().metrics().get(i);
                if (!metric.type().equals("Resource")) {
                    warnings.add(path + ".autoScaling.metrics[" + i + "] of the type " + metric.type() + NO_EFFECT);
                }
            }
            if (spec.autoScaling().behavior() != null) {
                warnings.add(path + ".autoScaling.behavior" + NO_EFFECT);
            }
        }
        containers(path + ".containers", pod.containers());
        containers(path + ".initContainers", pod.initContainers());
    }

    private void pod(Fields fields) {
        for (String field : POD_FIELDS) {
            if (fields.has(field)) {
                warnings.add(fields.at(field) + NO_EFFECT);
            }
        }
    }

    private void containers(String path, List<Container> containers) {
        for (int i = 0; i < containers.size(); i++) {
            Container one = containers.get(i);
            String at = path + "[" + i + "]";
            container(at, one);
            if (one.command().isEmpty()
                    && one.image() != null
                    && !KNOWN.matcher(one.image()).matches()) {
                warnings.add(
                        at + " has an image and no command: one machine starts programs, not images; give the command"
                                + " that the image runs");
            }
        }
    }

    private void container(String path, Container container) {
        Fields fields = new Fields(container.tree(), path);
        for (String field : CONTAINER_FIELDS) {
            if (fields.has(field)) {
                warnings.add(fields.at(field) + NO_EFFECT);
            }
        }
        int port = 0;
        for (JsonNode one : container.tree().path("ports")) {
            String at = path + ".ports[" + port++ + "].";
            for (String field : List.of("hostPort", "hostIP")) {
                if (one.hasNonNull(field)) {
                    warnings.add(at + field + NO_EFFECT);
                }
            }
            if (!one.path("protocol").asText("TCP").equals("TCP")) {
                warnings.add(at + "protocol" + NO_EFFECT + ": everything is called over TCP");
            }
        }
        if (path.endsWith(".model")) {
            for (String field : ENGINE_FIELDS.stream().sorted().toList()) {
                if (fields.has(field)) {
                    warnings.add(fields.at(field) + " has no effect where the runtime's engine is Nereid itself");
                }
            }
        }
        for (String name : container.resources().limits().keySet()) {
            if (name.contains("/")) {
                warnings.add(
                        path + ".resources.limits." + Schema.clip(name) + NO_EFFECT + ": devices are not shared out");
            }
        }
    }
}
