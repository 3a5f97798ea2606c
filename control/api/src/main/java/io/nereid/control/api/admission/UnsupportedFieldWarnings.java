// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.control.api.AccessAnnotation;
import io.nereid.control.api.Container;
import io.nereid.control.api.FieldReader;
import io.nereid.control.api.InferenceGraph;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.InferenceService.CanarySpec;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.api.InferenceService.Metric;
import io.nereid.control.api.InferenceService.ModelSpec;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.api.ObjectMeta;
import io.nereid.control.api.PodSpec;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.ValidationErrors;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;

/** Adds warnings for fields that have no effect on one machine. Confined to one admission. */
final class UnsupportedFieldWarnings {
    /** Fields of pods about nodes, a cluster's network and isolation. */
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

    /** Fields of a container that have no effect when the engine serves the model instead of the image's server. */
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

    /**
     * Images of model servers that the engine replaces, from any registry and with any tag; the planner has the same
     * list.
     */
    private static final Pattern KNOWN = Pattern.compile(
            "(.*/)?(sklearnserver|xgbserver|lgbserver|predictiveserver|pmmlserver|paddleserver|mlserver|tritonserver"
                    + "|torchserve|torchserve-kfs|pytorch-serve|tensorflow-serving|tensorflow/serving|tensorflow/serving-gpu"
                    + "|openvino/model_server|nereid/nereid|nereid/explainer)([:@].*)?",
            Pattern.CASE_INSENSITIVE);

    private final List<String> warnings;

    UnsupportedFieldWarnings(List<String> warnings) {
        this.warnings = warnings;
    }

    void graph(InferenceGraph graph) {
        callers(graph.metadata());
        graph(FieldReader.of(graph.tree()).object("spec"), warnings);
    }

    private void callers(ObjectMeta metadata) {
        if (AccessAnnotation.isSet(metadata)) {
            warnings.add(AccessAnnotation.ON_ONE_MACHINE);
        }
    }

    void service(InferenceService service) {
        callers(service.metadata());
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
                warnings.add("spec.explainer.art runs from an image, which is not supported on one machine; write"
                        + " nereid: {method: shap}, or containers with a command");
            }
        }
    }

    void runtime(ServingRuntime runtime) {
        if (!runtime.multiModel() && runtime.pod().container(InferenceService.MAIN_CONTAINER) == null) {
            warnings.add("spec.containers does not have a container named " + InferenceService.MAIN_CONTAINER
                    + "; services cannot use this runtime");
        }
        FieldReader spec = FieldReader.of(runtime.tree()).object("spec");
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

    /** Warns about the fields of a graph that have no effect, because graphs run in the server. */
    private static void graph(FieldReader spec, List<String> warnings) {
        for (String field : List.of("affinity", "tolerations", "nodeSelector", "nodeName")) {
            if (spec.has(field)) {
                warnings.add("spec." + field + " has no effect on one machine");
            }
        }
        for (String field : List.of(
                "minReplicas", "maxReplicas", "scaleTarget", "scaleMetric", "resources", "serviceAccountName")) {
            if (spec.has(field)) {
                warnings.add("spec." + field
                        + " has no effect on one machine: graphs run in the server, without a process of their own");
            }
        }
        for (String field : List.of("serverRead", "serverWrite", "serverIdle")) {
            if (spec.object("routerTimeouts").has(field)) {
                warnings.add("spec.routerTimeouts." + field
                        + " has no effect on one machine: the server's own limits hold; timeout is for the whole graph,"
                        + " routerTimeouts.serviceClient for one step");
            }
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
            warnings.add(path + ".model names no storage (storageUri, storage), so the server has nothing to load");
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
        FieldReader fields = new FieldReader(pod.tree(), path);
        pod(fields);
        if (spec.logger() != null
                && spec.logger().storage() != null
                && spec.logger().storage().schemaPath() != null) {
            warnings.add(path + ".logger.storage.schemaPath" + NO_EFFECT + ": it is for ModelMesh");
        }
        if (spec.deploymentStrategy() != null) {
            warnings.add(
                    path + ".deploymentStrategy" + NO_EFFECT + ": a new revision receives traffic when it is ready");
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

    private void pod(FieldReader fields) {
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
                        at + " has an image and no command: on one machine the server starts programs, not images; give"
                                + " the command that the image runs");
            }
        }
    }

    private void container(String path, Container container) {
        FieldReader fields = new FieldReader(container.tree(), path);
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
                warnings.add(at + "protocol" + NO_EFFECT + ": all calls use TCP");
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
                warnings.add(path + ".resources.limits." + ValidationErrors.clip(name) + NO_EFFECT
                        + ": devices are not allocated to containers");
            }
        }
    }
}
