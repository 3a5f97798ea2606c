// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.ServiceConfig.DeploymentMode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** What an InferenceService gets that leaves it out. Confined to one admission. */
final class ServiceDefaults {
    static final String MODE_ANNOTATION = "serving.kserve.io/deploymentMode";
    static final String FORMAT_ANNOTATION = "modelFormat";

    /** The blocks that are for the second protocol unless they say otherwise. */
    private static final Set<String> V2_BLOCKS = Set.of("triton", "onnx", "huggingface");

    /** The formats that are. */
    private static final Set<String> V2_FORMATS = Set.of("triton", "vLLM");

    private final ServiceConfig config;

    ServiceDefaults(ServiceConfig config) {
        this.config = config;
    }

    void apply(ObjectNode resource, @Nullable ObjectNode old) {
        mode(resource);
        if (!(resource.get("spec") instanceof ObjectNode spec)) {
            return;
        }
        if (spec.get("predictor") instanceof ObjectNode predictor) {
            predictor(predictor);
            format(resource, predictor, old);
        }
        if (spec.get("canary") instanceof ArrayNode canaries) {
            for (JsonNode canary : canaries) {
                if (canary.get("predictor") instanceof ObjectNode predictor) {
                    predictor(predictor);
                }
            }
        }
        if (spec.get("transformer") instanceof ObjectNode transformer) {
            if (!(transformer.get("nereid") instanceof ObjectNode)) {
                containers(transformer);
            }
            component(transformer);
        }
        if (spec.get("explainer") instanceof ObjectNode explainer) {
            if (explainer.get("art") instanceof ObjectNode art) {
                resources(art);
            } else if (!(explainer.get("nereid") instanceof ObjectNode)) {
                containers(explainer);
            }
            component(explainer);
        }
    }

    /** Former names of deployment modes become today's. */
    private void mode(ObjectNode resource) {
        if (!(resource.get("metadata") instanceof ObjectNode meta)) {
            return;
        }
        JsonNode written = meta.path("annotations").path(MODE_ANNOTATION);
        if (written.isTextual()) {
            DeploymentMode mode = DeploymentMode.of(written.textValue());
            if (mode != null) {
                ((ObjectNode) meta.get("annotations")).put(MODE_ANNOTATION, mode.text());
            }
            return;
        }
        DeploymentMode mode = config.deploy().defaultDeploymentMode();
        if (written.isMissingNode() && mode != DeploymentMode.KNATIVE && annotatable(meta)) {
            meta.withObjectProperty("annotations").put(MODE_ANNOTATION, mode.text());
        }
    }

    private void predictor(ObjectNode predictor) {
        framework(predictor);
        if (predictor.get("model") instanceof ObjectNode model) {
            if (!model.has("protocolVersion")
                    && V2_FORMATS.contains(
                            model.path("modelFormat").path("name").asText(""))) {
                model.put("protocolVersion", "v2");
            }
        } else if (Schemas.FRAMEWORKS.stream().noneMatch(predictor::has)) {
            containers(predictor);
        }
        component(predictor);
    }

    /** The block of a framework becomes {@code model}, if it is the only one. */
    private static void framework(ObjectNode predictor) {
        List<String> blocks = Schemas.FRAMEWORKS.stream().filter(predictor::has).toList();
        if (blocks.size() != 1 || predictor.has("model")) {
            return;
        }
        String name = blocks.get(0);
        if (!(predictor.get(name) instanceof ObjectNode block)) {
            return;
        }
        ObjectNode model = predictor.objectNode();
        model.putObject("modelFormat").put("name", name);
        model.setAll(block);
        if (!model.has("protocolVersion") && V2_BLOCKS.contains(name)) {
            model.put("protocolVersion", "v2");
        }
        predictor.remove(name);
        predictor.set("model", model);
    }

    /** The format as an annotation, which runtimes' templates may name; follows the format when nobody wrote another one. */
    private static void format(ObjectNode resource, ObjectNode predictor, @Nullable ObjectNode old) {
        String format = formatOf(predictor);
        if (format.isEmpty() || !(resource.get("metadata") instanceof ObjectNode meta) || !annotatable(meta)) {
            return;
        }
        JsonNode written = meta.path("annotations").path(FORMAT_ANNOTATION);
        boolean derived = old != null
                && written.isTextual()
                && written.equals(old.path("metadata").path("annotations").path(FORMAT_ANNOTATION))
                && written.textValue().equals(formatOf(old.path("spec").path("predictor")));
        if (written.isMissingNode() || derived) {
            meta.withObjectProperty("annotations").put(FORMAT_ANNOTATION, format);
        }
    }

    private static String formatOf(JsonNode predictor) {
        return predictor.path("model").path("modelFormat").path("name").asText("");
    }

    private static boolean annotatable(ObjectNode meta) {
        return !meta.has("annotations") || meta.get("annotations").isObject();
    }

    /** The container that answers gets its name, and resources. */
    private void containers(ObjectNode component) {
        if (!(component.get("containers") instanceof ArrayNode containers)) {
            return;
        }
        List<ObjectNode> candidates = new ArrayList<>();
        for (JsonNode container : containers) {
            if (container instanceof ObjectNode one) {
                String name = one.path("name").asText("");
                if (name.equals(InferenceService.MAIN_CONTAINER)) {
                    resources(one);
                    return;
                }
                if (!name.equals(InferenceService.TRANSFORMER_CONTAINER)) {
                    candidates.add(one);
                }
            }
        }
        if (!candidates.isEmpty()) {
            ObjectNode first = candidates.get(0);
            first.put("name", InferenceService.MAIN_CONTAINER);
            resources(first);
        }
    }

    /** A default request is never more than the limit that is written, nor a default limit less than the request. */
    private void resources(ObjectNode container) {
        if (container.has("resources") && !(container.get("resources") instanceof ObjectNode)) {
            return;
        }
        ObjectNode resources = container.withObjectProperty("resources");
        for (String part : List.of("limits", "requests")) {
            if (resources.has(part) && !resources.get(part).isObject()) {
                return;
            }
        }
        Container.Resources defaults = config.inferenceService().defaultResources();
        ObjectNode limits = resources.withObjectProperty("limits");
        ObjectNode requests = resources.withObjectProperty("requests");
        for (String name : List.of("cpu", "memory")) {
            String limit = defaults.limits().getOrDefault(name, "0");
            String request = defaults.requests().getOrDefault(name, "0");
            boolean limited = limits.has(name);
            boolean requested = requests.has(name);
            if (!limited) {
                limits.put(
                        name,
                        requested && less(limit, requests.get(name).asText())
                                ? requests.get(name).asText()
                                : limit);
            }
            if (!requested) {
                requests.put(
                        name,
                        limited && less(limits.get(name).asText(), request)
                                ? limits.get(name).asText()
                                : request);
            }
        }
    }

    private static boolean less(String one, String other) {
        try {
            return Quantity.parse(one).value().compareTo(Quantity.parse(other).value()) < 0;
        } catch (io.nereid.base.ServingException e) {
            return false; // the rules tell of it
        }
    }

    private void component(ObjectNode component) {
        if (!config.autoMountServiceAccountToken() && !component.has("automountServiceAccountToken")) {
            component.put("automountServiceAccountToken", false);
        }
        if (component.get("storageUris") instanceof ArrayNode uris) {
            for (JsonNode uri : uris) {
                if (uri instanceof ObjectNode one && !one.has("mountPath")) {
                    one.put("mountPath", InferenceService.StorageUri.MODELS);
                }
            }
        }
    }

    /** Takes away what is null, as if it were not written. */
    static void prune(JsonNode node) {
        if (node instanceof ObjectNode object) {
            List<String> nulls = object.properties().stream()
                    .filter(entry -> entry.getValue().isNull())
                    .map(Map.Entry::getKey)
                    .toList();
            object.remove(nulls);
        }
        node.forEach(ServiceDefaults::prune);
    }
}
