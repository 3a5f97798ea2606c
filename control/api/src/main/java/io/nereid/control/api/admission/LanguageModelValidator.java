// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.ValidationErrors;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Validates LLMInferenceServices and LLMInferenceServiceConfigs by the rules of KServe's definitions and webhooks.
 * Confined to one admission.
 */
final class LanguageModelValidator {
    private static final String DEVICE_CLASS = "serving.kserve.io/exp-dra-device-class";
    private static final String DEVICE_COUNT = "serving.kserve.io/exp-dra-device-count";
    private static final String CEL_SELECTOR = "serving.kserve.io/exp-dra-cel-selector";
    private static final String CONTAINER_NAME = "serving.kserve.io/exp-dra-container-name";

    private static final Pattern COST = Pattern.compile("\\d+(\\.\\d+)?");
    private static final Pattern KEY_RESOURCE = Pattern.compile("kbs:///[\\w.-]+/[\\w.-]+/[\\w.-]+");
    private static final Pattern GROUP = Pattern.compile("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?");
    private static final Pattern LABEL = Pattern.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?");
    private static final Pattern SUBDOMAIN =
            Pattern.compile("(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*");

    private final ValidationErrors problems;
    private final List<String> warnings;

    LanguageModelValidator(ValidationErrors problems, List<String> warnings) {
        this.problems = problems;
        this.warnings = warnings;
    }

    /** @param old the stored service; null on creation */
    void service(ObjectNode resource, @Nullable ObjectNode old) {
        JsonNode spec = resource.path("spec");
        JsonNode metadata = resource.path("metadata");
        route(spec.path("router"));
        traffic(spec.path("router"));
        workload("spec", spec);
        if (spec.has("prefill")) {
            workload("spec.prefill", spec.path("prefill"));
            actuators(spec);
        }
        scheduler(spec.path("router").path("scheduler"));
        adapters(spec.path("model"), metadata.path("name").asText(""));
        devices(metadata.path("annotations"));
        confidential(spec.path("model"));
        if (old != null) {
            size("spec", old.path("spec"), spec);
            if (spec.has("prefill") && old.path("spec").has("prefill")) {
                size("spec.prefill", old.path("spec").path("prefill"), spec.path("prefill"));
            }
        }
    }

    void config(ObjectNode resource) {
        JsonNode spec = resource.path("spec");
        if (!spec.path("baseRefs").isEmpty()) {
            problems.add("spec.baseRefs", "a configuration cannot refer to other ones; name them in the service");
        }
        replicas(spec.path("router").path("scheduler"));
    }

    private void route(JsonNode router) {
        JsonNode http = router.path("route").path("http");
        boolean refs = !http.path("refs").isEmpty();
        String at = "spec.router.route.http";
        if (refs && http.has("spec")) {
            problems.add(at, "has both refs and spec; choose the HTTPRoutes of refs, or one with this spec");
        }
        JsonNode gateways = router.path("gateway").path("refs");
        if (refs && router.has("gateway") && gateways.isEmpty()) {
            problems.add(
                    at + ".refs",
                    "your own HTTPRoutes cannot use the managed gateway of an empty spec.router.gateway; remove refs, or"
                            + " name your gateways in spec.router.gateway.refs");
        }
        JsonNode parents = http.path("spec").path("parentRefs");
        if (!parents.isEmpty() && !gateways.isEmpty()) {
            if (names(parents).equals(names(gateways))) {
                warnings.add(at + ".spec.parentRefs can be left out: they are those of spec.router.gateway.refs");
            } else {
                problems.add(at + ".spec.parentRefs", "differ from spec.router.gateway.refs; leave one of the two out");
            }
        }
    }

    private static List<String> names(JsonNode refs) {
        List<String> names = new ArrayList<>();
        refs.forEach(ref -> names.add(ref.path("namespace").asText("") + "/"
                + ref.path("name").asText("") + "/" + ref.path("sectionName").asText("")));
        names.sort(null);
        return names;
    }

    private void traffic(JsonNode router) {
        JsonNode route = router.path("route");
        boolean group = route.has("group");
        if (!group && !route.has("weight")) {
            return;
        }
        if (group && !GROUP.matcher(route.path("group").asText()).matches()) {
            problems.add(
                    "spec.router.route.group",
                    "expected lower-case letters, digits and '-' with 63 characters at most, found \""
                            + ValidationErrors.clip(route.path("group").asText()) + "\"");
        }
        if (router.has("ingress")) {
            problems.add(
                    "spec.router.route.group",
                    "traffic of a group is split by HTTPRoutes of the Gateway API; leave out spec.router.ingress");
        } else if (!group) {
            problems.add("spec.router.route.group", "missing; a weight is one within a group");
        } else if (!route.has("weight")) {
            problems.add("spec.router.route.weight", "missing; a member of a group has a weight");
        } else if (!route.path("http").path("refs").isEmpty()) {
            problems.add(
                    "spec.router.route.http.refs",
                    "your own HTTPRoutes cannot split the traffic of a group; leave out refs");
        }
    }

    private void workload(String path, JsonNode workload) {
        parallelism(path, workload);
        scaling(path, workload);
        offloading(path + ".kvCacheOffloading", workload.path("kvCacheOffloading"));
    }

    private void parallelism(String path, JsonNode workload) {
        JsonNode sizes = workload.path("parallelism");
        boolean data = sizes.has("data") || sizes.has("dataLocal");
        if (workload.has("worker") && !data && !sizes.has("pipeline")) {
            problems.add(
                    path + ".worker",
                    "workers need " + path + ".parallelism with pipeline, or with data and dataLocal");
        }
        if (data && sizes.has("pipeline")) {
            problems.add(path + ".parallelism", "has both pipeline and data parallelism; choose one");
        }
        if (sizes.has("data") != sizes.has("dataLocal")) {
            String missing = sizes.has("data") ? "dataLocal" : "data";
            problems.add(path + ".parallelism." + missing, "missing; data and dataLocal are set together");
        }
    }

    /** The number of pods of a replica; it cannot be changed. */
    private void size(String path, JsonNode before, JsonNode after) {
        int one = size(before.path("parallelism"));
        int other = size(after.path("parallelism"));
        if (one != other) {
            problems.add(
                    path + ".parallelism",
                    "the size of a replica cannot be changed from " + one + " to " + other
                            + "; delete the service and create another one");
        }
    }

    private static int size(JsonNode sizes) {
        if (sizes.has("data") || sizes.has("dataLocal")) {
            return Math.max(
                    1,
                    Math.max(1, sizes.path("data").asInt(1))
                            / Math.max(1, sizes.path("dataLocal").asInt(1)));
        }
        return sizes.path("pipeline").asInt(1);
    }

    private void scaling(String path, JsonNode workload) {
        if (!(workload.get("scaling") instanceof ObjectNode scaling)) {
            return;
        }
        String at = path + ".scaling";
        if (workload.has("replicas")) {
            problems.add(at, "excludes " + path + ".replicas; choose a fixed number of replicas, or scaling");
        }
        int least = scaling.path("minReplicas").asInt(1);
        int most = scaling.path("maxReplicas").asInt();
        if (least > most) {
            problems.add(at + ".minReplicas", least + " is more than maxReplicas, " + most);
        }
        if (!(scaling.get("wva") instanceof ObjectNode wva)) {
            problems.add(at + ".wva", "missing; expected wva with hpa or keda");
            return;
        }
        if (wva.has("hpa") == wva.has("keda")) {
            problems.add(at + ".wva", "expected exactly one of hpa and keda");
        }
        String cost = wva.path("variantCost").asText("");
        if (!cost.isEmpty() && !COST.matcher(cost).matches()) {
            problems.add(
                    at + ".wva.variantCost",
                    "expected a number in quotes such as \"10.0\", found \"" + ValidationErrors.clip(cost) + "\"");
        }
        keda(at, scaling, wva.path("keda"));
    }

    private void keda(String at, JsonNode scaling, JsonNode keda) {
        for (JsonNode modifier : keda.path("advanced").path("scalingModifiers")) {
            if (!modifier.asText("").isEmpty()) {
                problems.add(at + ".wva.keda.advanced.scalingModifiers", "must not be set: the formula is that of wva");
                break;
            }
        }
        if (!keda.path("advanced")
                .path("horizontalPodAutoscalerConfig")
                .path("name")
                .asText("")
                .isEmpty()) {
            problems.add(
                    at + ".wva.keda.advanced.horizontalPodAutoscalerConfig.name",
                    "must not be set: the controller names the autoscaler");
        }
        if (keda.has("idleReplicaCount")
                && keda.path("idleReplicaCount").asInt()
                        >= scaling.path("minReplicas").asInt(1)) {
            problems.add(
                    at + ".wva.keda.idleReplicaCount",
                    keda.path("idleReplicaCount").asInt() + " is not less than minReplicas, "
                            + scaling.path("minReplicas").asInt(1));
        }
    }

    /** One metric pipeline serves both workloads. */
    private void actuators(JsonNode spec) {
        JsonNode decode = spec.path("scaling").path("wva");
        JsonNode prefill = spec.path("prefill").path("scaling").path("wva");
        if (decode.isObject() && prefill.isObject() && decode.has("hpa") != prefill.has("hpa")) {
            problems.add(
                    "spec.prefill.scaling.wva",
                    "uses " + (prefill.has("hpa") ? "hpa" : "keda") + ", and spec.scaling.wva uses "
                            + (decode.has("hpa") ? "hpa" : "keda") + "; expected the same in both");
        }
    }

    private void offloading(String path, JsonNode offloading) {
        JsonNode tiers = offloading.path("secondary");
        for (int i = 0; i < tiers.size(); i++) {
            String at = path + ".secondary[" + i + "].fileSystem";
            JsonNode files = tiers.get(i).path("fileSystem");
            JsonNode claim = files.path("pvc");
            if (files.isMissingNode()) {
                problems.add(at, "missing; tiers are file systems");
            } else if (files.has("emptyDir") == files.has("pvc")) {
                problems.add(at, "expected exactly one of emptyDir and pvc");
            } else if (files.has("pvc") && claim.has("spec") == claim.has("ref")) {
                problems.add(at + ".pvc", "expected exactly one of spec and ref");
            } else if (claim.has("ref")
                    && claim.path("ref").path("name").asText("").isEmpty()) {
                problems.add(at + ".pvc.ref.name", "empty; expected the name of a PersistentVolumeClaim");
            }
        }
    }

    private void replicas(JsonNode scheduler) {
        if (scheduler.has("replicas") && scheduler.path("replicas").asInt() < 1) {
            problems.add(
                    "spec.router.scheduler.replicas", scheduler.path("replicas").asInt() + " is less than 1");
        }
    }

    private void scheduler(JsonNode scheduler) {
        replicas(scheduler);
        if (!(scheduler.get("config") instanceof ObjectNode config)) {
            return;
        }
        String at = "spec.router.scheduler.config";
        if (config.has("inline") == config.has("ref")) {
            problems.add(at, "expected exactly one of inline and ref");
        } else if (config.has("inline") && config.path("inline").isEmpty()) {
            problems.add(at + ".inline", "empty; expected the configuration of the scheduler");
        } else if (config.has("ref")
                && config.path("ref").path("name").asText("").isEmpty()) {
            problems.add(at + ".ref.name", "missing; expected the name of a ConfigMap");
        }
    }

    private void adapters(JsonNode model, String service) {
        JsonNode adapters = model.path("lora").path("adapters");
        if (!adapters.isMissingNode() && !adapters.isNull() && !adapters.isArray()) {
            problems.add("spec.model.lora.adapters", "expected a list, found " + ValidationErrors.shown(adapters));
            return;
        }
        String base = model.path("name").asText(service);
        Map<String, Integer> seen = new HashMap<>();
        for (int i = 0; i < adapters.size(); i++) {
            String at = "spec.model.lora.adapters[" + i + "].name";
            String name = adapters.get(i).path("name").asText("");
            if (name.isEmpty()) {
                problems.add(at, "missing; it must be given");
            } else if (name.equals(".") || name.equals("..")) {
                problems.add(at, "\"" + name + "\" is a path; expected the name of an adapter");
            } else if (name.equals(base)) {
                problems.add(at, "\"" + ValidationErrors.clip(name) + "\" is the name of the model itself");
            } else {
                Integer other = seen.putIfAbsent(name, i);
                if (other != null) {
                    problems.add(
                            at,
                            "\"" + ValidationErrors.clip(name) + "\" is the name of adapters[" + other + "] as well");
                }
            }
        }
    }

    private void devices(JsonNode annotations) {
        String path = "metadata.annotations.";
        boolean chosen = annotations.has(DEVICE_CLASS);
        for (String other : List.of(DEVICE_COUNT, CEL_SELECTOR, CONTAINER_NAME)) {
            if (!chosen && annotations.has(other)) {
                problems.add(path + DEVICE_CLASS, "missing; " + other + " needs it");
                break;
            }
        }
        matching(annotations, DEVICE_CLASS, SUBDOMAIN, "the name of a DeviceClass");
        matching(annotations, CONTAINER_NAME, LABEL, "the name of a container");
        String count = annotations.path(DEVICE_COUNT).asText("").strip();
        if (!count.isEmpty() && !count.matches("\\+?0*[1-9]\\d{0,8}")) {
            problems.add(
                    path + DEVICE_COUNT,
                    "expected a number of devices from 1, found \"" + ValidationErrors.clip(count) + "\"");
        }
        if (annotations.has(CEL_SELECTOR)
                && annotations.path(CEL_SELECTOR).asText("").isBlank()) {
            problems.add(path + CEL_SELECTOR, "empty; expected CEL expressions, one in a line");
        }
    }

    private void matching(JsonNode annotations, String name, Pattern form, String expected) {
        String value = annotations.path(name).asText("").strip();
        if (annotations.has(name) && !form.matcher(value).matches()) {
            problems.add(
                    "metadata.annotations." + name,
                    "expected " + expected + ", found \"" + ValidationErrors.clip(value) + "\"");
        }
    }

    private void confidential(JsonNode model) {
        JsonNode confidential = model.path("confidential");
        if (!confidential.path("enabled").asBoolean(false)) {
            return;
        }
        String uri = model.path("uri").asText("");
        for (String scheme : List.of("oci://", "pvc://")) {
            if (uri.startsWith(scheme)) {
                warnings.add("spec.model.confidential has no effect with a URI of " + scheme);
            }
        }
        String resource = confidential.path("resourceId").asText("");
        if (!resource.isEmpty() && !KEY_RESOURCE.matcher(resource).matches()) {
            problems.add(
                    "spec.model.confidential.resourceId",
                    "expected kbs:///REPOSITORY/TYPE/TAG, found \"" + ValidationErrors.clip(resource) + "\"");
        }
    }
}
