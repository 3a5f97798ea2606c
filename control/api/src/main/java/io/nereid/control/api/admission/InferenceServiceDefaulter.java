// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.Container;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.Quantity;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.config.InferenceServiceConfig.DeploymentMode;
import io.nereid.control.api.schema.ResourceSchemas;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Defaults the fields that an InferenceService leaves out, as KServe's mutating webhook does, and rewrites framework
 * blocks to {@code model}. Works on JSON trees because it runs before the records are read. Confined to one admission.
 */
public final class InferenceServiceDefaulter {
    public static final String MODE_ANNOTATION = "serving.kserve.io/deploymentMode";
    static final String FORMAT_ANNOTATION = "modelFormat";

    /** The framework blocks whose protocol version defaults to v2. */
    private static final Set<String> V2_BLOCKS = Set.of("triton", "onnx", "huggingface");

    /** The model formats whose protocol version defaults to v2. */
    private static final Set<String> V2_FORMATS = Set.of("triton", "vLLM");

    private final InferenceServiceConfig config;

    public InferenceServiceDefaulter(InferenceServiceConfig config) {
        this.config = config;
    }

    public void apply(ObjectNode resource, @Nullable ObjectNode old) {
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

    /** Rewrites former names of deployment modes, and annotates the configured default unless it is Knative. */
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
        } else if (ResourceSchemas.FRAMEWORKS.stream().noneMatch(predictor::has)) {
            containers(predictor);
        }
        component(predictor);
    }

    /**
     * Rewrites a framework block to {@code model}, if there is exactly one; validation rejects several. The block wins over
     * a {@code model} beside it, as in KServe: a file of old can be applied to a service whose block was rewritten.
     */
    private static void framework(ObjectNode predictor) {
        List<String> blocks =
                ResourceSchemas.FRAMEWORKS.stream().filter(predictor::has).toList();
        if (blocks.size() != 1) {
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

    /** A stored service whose framework block, if Kubernetes stores one, is rewritten as it is in a new service. */
    static @Nullable ObjectNode comparable(@Nullable ObjectNode old) {
        if (old == null || !(old.at("/spec/predictor") instanceof ObjectNode)) {
            return old;
        }
        ObjectNode copy = old.deepCopy();
        framework((ObjectNode) copy.at("/spec/predictor"));
        return copy;
    }

    /**
     * Warns about a {@code model} that was written beside a framework block and says something else, which nothing
     * serves. A model that was there before is what the defaulter of an admission had made of the block, so that there
     * is nothing to say about it.
     *
     * @param resource the service before its defaults
     * @param old the stored service; null on creation
     */
    static void shadowedModels(ObjectNode resource, @Nullable ObjectNode old, List<String> warnings) {
        JsonNode spec = resource.path("spec");
        JsonNode before = old == null ? MissingNode.getInstance() : old.path("spec");
        shadowedModel("spec.predictor", spec.path("predictor"), before.path("predictor"), warnings);
        for (int i = 0; i < spec.path("canary").size(); i++) {
            shadowedModel(
                    "spec.canary[" + i + "].predictor",
                    spec.path("canary").path(i).path("predictor"),
                    before.path("canary").path(i).path("predictor"),
                    warnings);
        }
    }

    private static void shadowedModel(String path, JsonNode predictor, JsonNode before, List<String> warnings) {
        JsonNode model = predictor.path("model");
        if (!model.isObject() || model.equals(before.path("model"))) {
            return;
        }
        ObjectNode served = predictor.deepCopy();
        framework(served);
        if (served.size() < predictor.size() && !model.equals(served.path("model"))) {
            String block = ResourceSchemas.FRAMEWORKS.stream()
                    .filter(predictor::has)
                    .findFirst()
                    .orElseThrow();
            warnings.add(path + ".model has no effect: " + block + " beside it is served, as in KServe; change " + block
                    + ", or remove it");
        }
    }

    /**
     * Annotates the model format, so that templates of runtimes can refer to it. An annotation that was derived from
     * the old format follows a change of the format; a value that the user set is kept.
     */
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

    /**
     * Defaults the resources of the main container. Without a container of its name, the first one that is not the
     * transformer becomes the main container.
     */
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

    /**
     * Defaults requests and limits. A default request is capped at a given limit, and a default limit is raised to a
     * given request, so that defaulting never makes a valid container invalid.
     */
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
            String limit = defaults.limits().get(name);
            String request = defaults.requests().get(name);
            boolean limited = limits.has(name);
            boolean requested = requests.has(name);
            if (!limited && limit != null) {
                String asked = requested ? requests.get(name).asText() : limit;
                limits.put(name, less(limit, asked) ? asked : limit);
            }
            if (!requested && request != null) {
                String most = limited ? limits.get(name).asText() : request;
                requests.put(name, less(most, request) ? most : request);
            }
        }
    }

    private static boolean less(String one, String other) {
        try {
            return Quantity.parse(one).value().compareTo(Quantity.parse(other).value()) < 0;
        } catch (io.nereid.base.ServingException e) {
            return false; // validation reports invalid quantities
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
}
