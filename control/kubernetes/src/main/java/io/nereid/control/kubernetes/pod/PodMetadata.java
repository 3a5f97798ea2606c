// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.pod;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.Container;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.InferenceService.BatcherSpec;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.api.InferenceService.LoggerSpec;
import io.nereid.control.api.InferenceService.ModelSpec;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.api.InferenceService.StorageSpec;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.component.ComponentPlan;
import io.nereid.control.core.component.PlanningContext;
import io.nereid.control.kubernetes.cluster.ModelConfigMap;
import io.nereid.control.kubernetes.cluster.Trees;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The labels and annotations of a component's objects and pods. Stateless. */
public final class PodMetadata {
    private PodMetadata() {}

    /** The labels of the component's objects, and of its pods. */
    public static Map<String, String> labels(ComponentPlan plan, PlanningContext context) {
        Map<String, String> labels = ofRevisions(plan, context);
        labels.put("app", "isvc." + plan.name());
        return labels;
    }

    /** The labels of the pods of Knative's revisions, which Knative selects by labels of its own. */
    public static Map<String, String> ofRevisions(ComponentPlan plan, PlanningContext context) {
        Map<String, String> runtime = new LinkedHashMap<>(plan.runtimeLabels());
        Map<String, String> own = new LinkedHashMap<>();
        plan.derivedLabels().forEach((key, value) -> {
            if (context.service.metadata().labels().get(key) == null) {
                own.put(key, value);
            }
        });
        own.putAll(plan.extension().labels());
        return context.labels(runtime, own, plan.component().text());
    }

    /** The annotations of the component's objects, and of its pods before anything is added to them. */
    public static Map<String, String> annotations(
            ComponentPlan plan, @Nullable PredictorSpec predictor, PlanningContext context) {
        Map<String, String> all = context.annotations(
                context.propagated(plan.runtimeAnnotations()),
                context.propagated(plan.extension().annotations()));
        ComponentExtensionSpec beside = EngineContainer.beside(plan, plan.extension());
        logger(beside.logger(), all);
        batcher(beside.batcher(), all);
        if (plan.component() == Component.PREDICTOR && predictor != null) {
            predictor(plan, predictor, context, all);
        } else {
            StorageSpec storage = explainerStorage(plan, context);
            if (storage != null) {
                storage(storage, all);
            }
            String uri = sourceUri(plan, context);
            if (!uri.isEmpty()) {
                all.put(PodNames.SOURCE_URI, uri);
            }
            String container = plan.tree().path("storageContainerName").asText("");
            if (!container.isEmpty() && !OwnComponent.sourceUri(plan, context).isEmpty()) {
                all.put(PodNames.STORAGE_CONTAINER, container);
            }
        }
        String container = plan.tree().path("storageContainerName").asText("");
        if (!container.isEmpty() && all.containsKey(PodNames.SOURCE_URI)) {
            all.put(PodNames.STORAGE_CONTAINER, container);
        }
        return all;
    }

    private static void predictor(
            ComponentPlan plan, PredictorSpec predictor, PlanningContext context, Map<String, String> all) {
        ModelSpec model = predictor.model();
        if (model != null && model.storage() != null) {
            storage(model.storage(), all);
        }
        if (isMultiModel(plan, predictor) && !EngineContainer.serves(plan)) {
            all.put(PodNames.AGENT, "true");
            all.put(PodNames.AGENT_CONFIG_MAP, ModelConfigMap.name(context.name()));
            all.put(PodNames.AGENT_CONFIG_PATH, PodNames.MODEL_CONFIG);
            all.put(PodNames.AGENT_MODEL_DIR, PodNames.MODELS);
        }
        String uri = model != null ? text(model.storageUri()) : environment(plan);
        if (!uri.isEmpty()) {
            all.put(PodNames.SOURCE_URI, uri);
        }
        if (model != null
                && model.confidential() != null
                && model.confidential().enabled()) {
            all.put(PodNames.CONFIDENTIAL, "true");
            if (!text(model.confidential().resourceId()).isEmpty()) {
                all.put(
                        PodNames.CONFIDENTIAL_RESOURCE,
                        text(model.confidential().resourceId()));
            }
        }
    }

    /** Whether the predictor is a server without a model, which gets models later. */
    public static boolean isMultiModel(ComponentPlan plan, PredictorSpec predictor) {
        ModelSpec model = predictor.model();
        List<Container> containers = predictor.pod().containers();
        if (!containers.isEmpty()) {
            return "true".equals(containers.get(0).env("MULTI_MODEL_SERVER"));
        }
        return model != null
                && plan.artifacts().isEmpty()
                && !model.formatName().equals("huggingface");
    }

    private static @Nullable StorageSpec explainerStorage(ComponentPlan plan, PlanningContext context) {
        InferenceService.ExplainerSpec explainer = context.service.explainer();
        return plan.component() == Component.EXPLAINER && explainer != null && explainer.art() != null
                ? explainer.art().storage()
                : null;
    }

    private static String sourceUri(ComponentPlan plan, PlanningContext context) {
        InferenceService.ExplainerSpec explainer = context.service.explainer();
        if (plan.component() == Component.EXPLAINER && explainer != null && explainer.art() != null) {
            return text(explainer.art().storageUri());
        }
        String own = OwnComponent.sourceUri(plan, context);
        return own.isEmpty() ? environment(plan) : own;
    }

    private static String environment(ComponentPlan plan) {
        Container main = plan.container(PodNames.MAIN);
        return main == null ? "" : text(main.env("STORAGE_URI"));
    }

    private static void storage(StorageSpec storage, Map<String, String> all) {
        all.put(PodNames.STORAGE_SPEC, "true");
        if (!storage.parameters().isEmpty()) {
            ObjectNode parameters = Trees.object();
            storage.parameters().entrySet().stream()
                    .sorted(Map.Entry.comparingByKey())
                    .forEach(entry -> parameters.put(entry.getKey(), entry.getValue()));
            all.put(PodNames.STORAGE_SPEC_PARAM, parameters.toString());
        }
        if (storage.key() != null) {
            all.put(PodNames.STORAGE_SPEC_KEY, storage.key());
        }
        if (storage.path() != null) {
            String path = storage.path();
            all.put(PodNames.SOURCE_URI, PodNames.PLACEHOLDER + (path.startsWith("/") ? path.substring(1) : path));
        }
    }

    private static void logger(@Nullable LoggerSpec logger, Map<String, String> all) {
        if (logger == null) {
            return;
        }
        all.put(PodNames.LOGGER, "true");
        JsonNode url = logger.tree().get("url");
        if (url != null && url.isTextual()) {
            all.put(PodNames.LOGGER_URL, url.textValue());
        }
        all.put(PodNames.LOGGER_MODE, logger.mode());
        if (!logger.metadataHeaders().isEmpty()) {
            all.put(PodNames.LOGGER_HEADERS, String.join(",", logger.metadataHeaders()));
        }
        if (!logger.metadataAnnotations().isEmpty()) {
            all.put(PodNames.LOGGER_ANNOTATIONS, String.join(",", logger.metadataAnnotations()));
        }
    }

    private static void batcher(@Nullable BatcherSpec batcher, Map<String, String> all) {
        if (batcher == null) {
            return;
        }
        all.put(PodNames.BATCHER, "true");
        if (batcher.maxBatchSize() != null) {
            all.put(PodNames.BATCHER_SIZE, batcher.maxBatchSize().toString());
        }
        if (batcher.maxLatency() != null) {
            all.put(PodNames.BATCHER_LATENCY, batcher.maxLatency().toString());
        }
    }

    private static String text(@Nullable String value) {
        return value == null ? "" : value;
    }
}
