// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.trainedmodel;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.Quantity;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.schema.ResourceSchemas;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * What a stored InferenceService is to TrainedModels. Immutable.
 *
 * @param multiModel whether its predictor is a server without a model, which gets its models later
 * @param frameworks the formats that its runtime supports; empty for any
 * @param memoryBytes the memory limit of its container; negative for none
 * @param openInference whether clients call it with Open Inference, and not with V1
 * @param ready whether it is ready
 * @param url where clients reach it; empty while it has no URL
 * @param address its URL in the cluster; empty for none
 */
public record MultiModelService(
        boolean multiModel,
        List<String> frameworks,
        long memoryBytes,
        boolean openInference,
        boolean ready,
        String url,
        String address) {
    /** A copy of the lists. */
    public MultiModelService {
        frameworks = List.copyOf(frameworks);
    }

    /** Whether a stored service, with or without defaults, is one whose predictor gets its models later. */
    public static boolean isMultiModel(JsonNode service) {
        JsonNode predictor = service.path("spec").path("predictor");
        JsonNode containers = predictor.path("containers");
        JsonNode model = model(service);
        if (!model.isObject()) {
            for (JsonNode variable : containers.path(0).path("env")) {
                if (variable.path("name").asText().equals("MULTI_MODEL_SERVER")) {
                    return variable.path("value").asText().equals("true");
                }
            }
            return false;
        }
        return model.path("storageUri").asText("").isEmpty()
                && !model.hasNonNull("storage")
                && predictor.path("storageUris").isEmpty()
                && !format(service).equals("huggingface");
    }

    /** The model of the predictor, also when it is written as a block of a framework; missing for containers. */
    private static JsonNode model(JsonNode service) {
        JsonNode predictor = service.path("spec").path("predictor");
        for (String block : ResourceSchemas.FRAMEWORKS) {
            if (predictor.path(block).isObject()) {
                return predictor.path(block);
            }
        }
        return predictor.path("model").isObject() ? predictor.path("model") : MissingNode.getInstance();
    }

    private static String format(JsonNode service) {
        JsonNode predictor = service.path("spec").path("predictor");
        for (String block : ResourceSchemas.FRAMEWORKS) {
            if (predictor.path(block).isObject()) {
                return block;
            }
        }
        return predictor.path("model").path("modelFormat").path("name").asText("");
    }

    /** The name of the runtime of a service: the one it names, else the one that was chosen; empty while there is none. */
    public static String runtime(JsonNode service) {
        String named = model(service).path("runtime").asText("");
        if (!named.isEmpty()) {
            return named;
        }
        JsonNode status = service.path("status");
        String chosen = status.path("servingRuntimeName").asText("");
        return chosen.isEmpty() ? status.path("clusterServingRuntimeName").asText("") : chosen;
    }

    /**
     * Reads a stored service.
     *
     * @param runtime its runtime; null while it is not known
     */
    public static MultiModelService of(ObjectNode service, @Nullable ServingRuntime runtime) {
        JsonNode status = service.path("status");
        boolean ready = false;
        for (JsonNode condition : status.path("conditions")) {
            ready |= condition.path("type").asText().equals("Ready")
                    && condition.path("status").asText().equals("True");
        }
        List<String> frameworks = new ArrayList<>();
        if (runtime != null) {
            runtime.supportedModelFormats()
                    .forEach(format -> frameworks.add(format.name().toLowerCase(Locale.ROOT)));
        }
        String protocol = model(service).path("protocolVersion").asText("");
        if (protocol.isEmpty()) {
            protocol = variable(service, "PROTOCOL");
        }
        return new MultiModelService(
                isMultiModel(service),
                frameworks,
                memory(service, runtime),
                protocol.endsWith("v2"),
                ready,
                status.path("url").asText(""),
                status.path("address").path("url").asText(""));
    }

    /** The same service with models that share no memory limit of its own. */
    public MultiModelService withoutLimit() {
        return new MultiModelService(multiModel, frameworks, -1, openInference, ready, url, address);
    }

    private static String variable(JsonNode service, String name) {
        for (JsonNode one : service.path("spec")
                .path("predictor")
                .path("containers")
                .path(0)
                .path("env")) {
            if (one.path("name").asText().equals(name)) {
                return one.path("value").asText("");
            }
        }
        return "";
    }

    private static long memory(JsonNode service, @Nullable ServingRuntime runtime) {
        JsonNode model = model(service);
        JsonNode own = model.isObject()
                ? model
                : service.path("spec").path("predictor").path("containers").path(0);
        String limit = limit(own);
        if (limit.isEmpty() && runtime != null) {
            for (JsonNode container : runtime.tree().path("spec").path("containers")) {
                if (container.path("name").asText().equals("kserve-container")) {
                    limit = limit(container);
                }
            }
        }
        try {
            return limit.isEmpty() ? -1 : Quantity.parse(limit).units();
        } catch (ServingException e) {
            return -1; // the service itself is refused for it
        }
    }

    private static String limit(JsonNode container) {
        return container.path("resources").path("limits").path("memory").asText("");
    }
}
