// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.pod;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceService.BatcherSpec;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.api.InferenceService.LoggerSpec;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.api.ServingEngine;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.component.ComponentPlan;
import io.nereid.control.core.component.NvidiaResources;
import io.nereid.control.core.component.PlanningContext;
import io.nereid.control.core.runtime.BuiltInRuntimes;
import io.nereid.control.kubernetes.cluster.ModelConfigMap;
import io.nereid.control.kubernetes.cluster.Trees;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The container of Nereid's engine, which logs and batches requests and fetches the models of a service with many itself:
 * no agent is beside it. Stateless.
 */
public final class EngineContainer {
    private static final String PAYLOAD_LOG = "--payload-log=";
    private static final String TRAINED_MODELS = "--trained-models=";
    private static final String MODELS_FILE = PodNames.MODEL_CONFIG + "/models.json";
    private static final String CONFIG_VOLUME = "model-config";
    private static final String CACHE_VOLUME = "model-cache";
    private static final String CACHE = "/var/cache/nereid-models";

    /** The options of a server of one model. */
    private static final List<String> OF_ONE_MODEL =
            List.of("--model_name", "--model_dir", "--model_format", "--model_layout", "--model_server");

    /** The setting of the section {@code nereid} with the image for GPUs. */
    public static final String GPU_IMAGE = "gpuImage";

    /** What the tag of a release's image for GPUs ends with. */
    private static final String GPU_TAG = "-cuda";

    private static final String ANNOTATION = "nereid.io/logger-";
    private static final String BUNDLE = "logger-ca-bundle";
    private static final String BUNDLE_PATH = "/etc/tls/logger";

    private EngineContainer() {}

    /**
     * Whether the component's server is Nereid's engine and the first to get its requests. A transformer in the same pod
     * gets them before it, and is logged by KServe's agent.
     */
    public static boolean serves(ComponentPlan plan) {
        if (plan.component() != Component.PREDICTOR
                || plan.selection() == null
                || plan.container(PodNames.TRANSFORMER) != null) {
            return false;
        }
        ServingRuntime runtime = plan.selection().chosen();
        return runtime != null && runtime.engine() == ServingEngine.NEREID;
    }

    /** The fields of a component without those that its container carries out itself. */
    public static ComponentExtensionSpec beside(ComponentPlan plan, ComponentExtensionSpec spec) {
        // Requests for explanations are not batched: nothing listens at the port of a batcher.
        boolean explainer = plan.component() == Component.EXPLAINER;
        if (!serves(plan) && !explainer) {
            return spec;
        }
        return new ComponentExtensionSpec(
                spec.minReplicas(),
                spec.maxReplicas(),
                spec.scaleTarget(),
                spec.scaleMetric(),
                spec.scaleMetricType(),
                spec.autoScaling(),
                spec.containerConcurrency(),
                spec.timeout(),
                spec.canaryTrafficPercent(),
                explainer ? spec.logger() : null,
                null,
                spec.labels(),
                spec.annotations(),
                spec.deploymentStrategy());
    }

    /** Adds the arguments for logging and batching to the container, and what they need to the pod. */
    static void complete(ObjectNode pod, ComponentPlan plan, PlanningContext context) {
        ObjectNode container = Trees.named(pod.path("containers"), PodNames.MAIN);
        if (container == null) {
            return;
        }
        image(container, plan, context);
        BatcherSpec batcher = plan.extension().batcher();
        if (batcher != null) {
            InferenceServiceConfig.Batcher usual = context.config.batcher();
            argument(container, "--max-batchsize=" + orElse(batcher.maxBatchSize(), usual.maxBatchSize()));
            argument(container, "--max-latency=" + orElse(batcher.maxLatency(), usual.maxLatencyMillis()));
        }
        LoggerSpec logger = plan.extension().logger();
        if (logger != null) {
            argument(container, PAYLOAD_LOG + log(logger, plan, context, pod, container));
        }
        PredictorSpec predictor = PredictorSpec.read(plan.tree());
        if (PodMetadata.isMultiModel(plan, predictor)) {
            if (batcher != null || logger != null) {
                throw ServingException.invalidArgument(
                        plan.where() + ": a server of many models has no " + (logger != null ? "logger" : "batcher"),
                        "remove it, or give each model an InferenceService of its own");
            }
            models(pod, container, ModelConfigMap.name(context.name()));
        }
    }

    /**
     * Gives a container that needs a GPU the installation's image for GPUs in the place of its usual one. An image of the
     * service or of a runtime of the user's own is not changed.
     *
     * @throws ServingException FAILED_PRECONDITION if the installation has no image for GPUs
     */
    static void image(ObjectNode container, ComponentPlan plan, PlanningContext context) {
        NvidiaResources gpus = NvidiaResources.of(container.path("resources"), plan.where());
        JsonNode settings = context.config.tree().path("nereid");
        String image = container.path("image").asText("");
        String usual = settings.path("image").asText("");
        ServingRuntime runtime =
                plan.selection() == null ? null : plan.selection().chosen();
        boolean builtIn = runtime != null && BuiltInRuntimes.isOfEngine(runtime.name());
        if (gpus.isEmpty() || !builtIn || !(usual.isEmpty() || usual.equals(image))) {
            return;
        }
        PredictorSpec predictor = PredictorSpec.read(plan.tree());
        if (predictor.model() != null && predictor.model().container().image() != null) {
            return;
        }
        JsonNode given = settings.path(GPU_IMAGE);
        String forGpus = given.isMissingNode() ? gpuImage(image) : given.asText("");
        if (forGpus.isEmpty()) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    plan.where() + ": the model needs " + gpus + ", and the settings name no image of Nereid for GPUs",
                    "set nereid: {\"" + GPU_IMAGE + "\": …} in inferenceservice-config, or remove the limit");
        }
        container.put("image", forGpus);
    }

    /** The image of the same release with the plugins for GPUs; empty for an image without a tag, or with a digest. */
    public static String gpuImage(String image) {
        boolean tagged = !image.contains("@") && image.lastIndexOf(':') > image.lastIndexOf('/');
        return !tagged || image.endsWith(GPU_TAG) ? (tagged ? image : "") : image + GPU_TAG;
    }

    /** Makes the server one that loads the models of a file, which a ConfigMap has. */
    private static void models(ObjectNode pod, ObjectNode container, String configMap) {
        ArrayNode args = withoutModel(Trees.list(container, "args"));
        args.add("--model-control-mode=explicit");
        args.add(TRAINED_MODELS + MODELS_FILE);
        args.add("--model-cache=" + CACHE);
        container.set("args", args);
        ObjectNode config = Trees.object().put("name", CONFIG_VOLUME);
        config.putObject("configMap").put("name", configMap).put("optional", true);
        Trees.addNamed(pod, "volumes", config);
        ObjectNode cache = Trees.object().put("name", CACHE_VOLUME);
        cache.putObject("emptyDir");
        Trees.addNamed(pod, "volumes", cache);
        Trees.list(container, "volumeMounts")
                .addObject()
                .put("name", CONFIG_VOLUME)
                .put("mountPath", PodNames.MODEL_CONFIG)
                .put("readOnly", true);
        Trees.list(container, "volumeMounts")
                .addObject()
                .put("name", CACHE_VOLUME)
                .put("mountPath", CACHE);
    }

    /** Takes back what makes the server of a service without a model load the models of a file. */
    public static void withoutTrainedModels(ObjectNode pod, ObjectNode container) {
        ArrayNode args = container.arrayNode();
        boolean file = false;
        for (JsonNode one : container.path("args")) {
            file |= one.asText().startsWith(TRAINED_MODELS + MODELS_FILE);
        }
        if (!file) {
            return;
        }
        for (JsonNode one : container.path("args")) {
            String text = one.asText();
            if (!text.startsWith(TRAINED_MODELS)
                    && !text.equals("--model-control-mode=explicit")
                    && !text.equals("--model-cache=" + CACHE)) {
                args.add(text);
            }
        }
        container.set("args", args);
        without(pod, "volumes");
        without(container, "volumeMounts");
    }

    private static void without(ObjectNode parent, String list) {
        ArrayNode rest = parent.arrayNode();
        for (JsonNode one : parent.path(list)) {
            String name = one.path("name").asText();
            if (!name.equals(CONFIG_VOLUME) && !name.equals(CACHE_VOLUME)) {
                rest.add(one);
            }
        }
        if (rest.isEmpty()) {
            parent.remove(list);
        } else {
            parent.set(list, rest);
        }
    }

    /** The arguments of a server without those that name its one model; a new list. */
    public static ArrayNode withoutModel(ArrayNode given) {
        ArrayNode args = given.arrayNode();
        boolean skip = false;
        for (JsonNode one : given) {
            String text = one.asText();
            String option = text.contains("=") ? text.substring(0, text.indexOf('=')) : text;
            if (skip || OF_ONE_MODEL.contains(option)) {
                skip = !skip && OF_ONE_MODEL.contains(option) && !text.contains("=");
                continue;
            }
            args.add(text);
        }
        return args;
    }

    private static int orElse(@Nullable Integer value, int usual) {
        return value == null || value <= 0 ? usual : value;
    }

    private static void argument(ObjectNode container, String argument) {
        Trees.list(container, "args").add(argument);
    }

    private static ObjectNode log(
            LoggerSpec logger, ComponentPlan plan, PlanningContext context, ObjectNode pod, ObjectNode container) {
        ObjectNode log = Trees.object();
        log.put("namespace", context.namespace()).put("service", context.name());
        log.put("component", plan.component().text()).put("source", plan.name());
        InferenceServiceConfig.Logger usual = context.config.logger();
        String url = logger.url();
        log.put("url", url == null || url.isEmpty() ? usual.defaultUrl() : url).put("mode", logger.mode());
        ObjectNode rest = logger.tree().deepCopy();
        rest.remove("url");
        rest.remove("mode");
        log.set("logger", rest);
        ObjectNode annotations = log.putObject("annotations");
        Map<String, String> all = context.annotations(
                context.propagated(plan.runtimeAnnotations()),
                context.propagated(plan.extension().annotations()));
        all.forEach((name, value) -> {
            if (name.startsWith(ANNOTATION) || logger.metadataAnnotations().contains(name)) {
                annotations.put(name, value);
            }
        });
        if (usual.tlsSkipVerify()) {
            log.put("tlsSkipVerify", true);
        } else if (usual.caBundle() != null) {
            log.put("caFile", BUNDLE_PATH + "/" + usual.caCertFile());
            ObjectNode volume = Trees.object().put("name", BUNDLE);
            volume.putObject("configMap").put("name", usual.caBundle()).put("optional", true);
            Trees.addNamed(pod, "volumes", volume);
            Trees.list(container, "volumeMounts")
                    .addObject()
                    .put("name", BUNDLE)
                    .put("mountPath", BUNDLE_PATH)
                    .put("readOnly", true);
        }
        return log;
    }

    /** Adds the credentials of the stores that the container loads from and logs to, as KServe's agent gets them. */
    static void credentials(ObjectNode pod, Map<String, String> annotations, StorageCredentials credentials) {
        ObjectNode container = Trees.named(pod.path("containers"), PodNames.MAIN);
        if (container == null) {
            return;
        }
        for (JsonNode argument : container.path("args")) {
            if (argument.asText().startsWith(TRAINED_MODELS)) {
                credentials.ofAccount(StorageCredentials.account(pod), annotations, container, pod);
            }
            if (!argument.asText().startsWith(PAYLOAD_LOG)) {
                continue;
            }
            JsonNode store = store(argument.asText().substring(PAYLOAD_LOG.length()));
            if (!store.isObject()) {
                continue;
            }
            String key = store.path("key").asText("");
            if (key.isEmpty()) {
                String account = store.path("serviceAccountName").asText("");
                credentials.ofAccount(account.isEmpty() ? "logger-sa" : account, annotations, container, pod);
            } else {
                credentials.ofStorage(key, Map.of(), annotations, container);
            }
        }
    }

    private static JsonNode store(String log) {
        try {
            return new ObjectMapper().readTree(log).path("logger").path("storage");
        } catch (JsonProcessingException e) {
            return MissingNode.getInstance(); // an argument of the service itself
        }
    }
}
