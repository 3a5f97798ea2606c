// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.PodSpec.WorkerSpec;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * KServe's {@code serving.kserve.io/v1beta1 InferenceService}: a served model with its optional transformer and
 * explainer. The records are read from a resource that was admitted, so that framework blocks such as {@code sklearn}
 * have already been rewritten to {@code model}. Immutable as long as the JSON trees are not modified.
 *
 * <pre>{@code
 * ObjectNode resource = admission.admit(kind, submitted, null).resource();
 * InferenceService service = InferenceService.read(resource);
 * ModelSpec model = service.predictor().model(); // null when custom containers serve the model
 * }</pre>
 *
 * @param metadata name, namespace, labels and annotations
 * @param predictor runs the model
 * @param transformer processes requests before the predictor and responses after it; null for none
 * @param explainer explains the predictor's predictions; null for none
 * @param canary further predictors that receive shares of the requests
 * @param status the last written status; empty before the first one
 * @param tree the whole resource
 */
public record InferenceService(
        ObjectMeta metadata,
        PredictorSpec predictor,
        @Nullable TransformerSpec transformer,
        @Nullable ExplainerSpec explainer,
        List<CanarySpec> canary,
        ObjectNode status,
        ObjectNode tree) {

    /** The name of the container that serves the requests. */
    public static final String MAIN_CONTAINER = "kserve-container";

    /** The name of the container that transforms requests in the predictor's own pod. */
    public static final String TRANSFORMER_CONTAINER = "transformer-container";

    /**
     * Reads an admitted service.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a value of a wrong type
     */
    public static InferenceService read(ObjectNode resource) {
        FieldReader fields = FieldReader.of(resource);
        FieldReader spec = fields.object("spec");
        FieldReader predictor = spec.object("predictor");
        return new InferenceService(
                ObjectMeta.read(resource),
                PredictorSpec.read(predictor.tree(), predictor.path()),
                spec.read("transformer", TransformerSpec::read),
                spec.read("explainer", ExplainerSpec::read),
                spec.list("canary", CanarySpec::read),
                fields.object("status").tree(),
                resource);
    }

    /**
     * The fields that predictor, transformer and explainer have in common.
     *
     * @param minReplicas null for the default of 1; 0 allows scale to zero
     * @param maxReplicas 0 for no limit
     * @param scaleTarget target value of the metric per replica; null for the default
     * @param scaleMetric {@code concurrency}, {@code rps}, {@code cpu} or {@code memory}; null for the default
     * @param scaleMetricType {@code Utilization} or {@code AverageValue}; null for the default
     * @param autoScaling several metrics and the scaling behavior; null for none
     * @param containerConcurrency maximum number of concurrent requests in one replica; null and 0 for no limit
     * @param timeout request timeout in seconds; null for the default
     * @param canaryTrafficPercent the newest revision's share of the traffic; null for all of it
     * @param logger the request logger; null for none
     * @param batcher the request batcher; null for none
     * @param labels additional labels
     * @param annotations additional annotations
     * @param deploymentStrategy the strategy of an {@code apps/v1} Deployment; null for none
     */
    public record ComponentExtensionSpec(
            @Nullable Integer minReplicas,
            int maxReplicas,
            @Nullable Integer scaleTarget,
            @Nullable String scaleMetric,
            @Nullable String scaleMetricType,
            @Nullable AutoScaling autoScaling,
            @Nullable Long containerConcurrency,
            @Nullable Long timeout,
            @Nullable Long canaryTrafficPercent,
            @Nullable LoggerSpec logger,
            @Nullable BatcherSpec batcher,
            Map<String, String> labels,
            Map<String, String> annotations,
            @Nullable ObjectNode deploymentStrategy) {
        static ComponentExtensionSpec read(FieldReader fields) {
            return new ComponentExtensionSpec(
                    fields.integer("minReplicas"),
                    fields.integer("maxReplicas", 0),
                    fields.integer("scaleTarget"),
                    fields.text("scaleMetric"),
                    fields.text("scaleMetricType"),
                    fields.read("autoScaling", AutoScaling::read),
                    fields.number("containerConcurrency"),
                    fields.number("timeout"),
                    fields.number("canaryTrafficPercent"),
                    fields.read("logger", LoggerSpec::read),
                    fields.read("batcher", BatcherSpec::read),
                    fields.map("labels"),
                    fields.map("annotations"),
                    fields.tree("deploymentStrategy"));
        }
    }

    /**
     * The predictor: a model for a runtime, or custom containers.
     *
     * @param name part of the names of its revisions; null for none
     * @param extension the fields that every component has
     * @param model null when custom containers serve the model
     * @param pod its containers and other fields of a pod
     * @param storageUris the URIs to download and the paths at which the files are mounted
     * @param storageContainerName the ClusterStorageContainer to use; null for the first that supports the URI
     * @param workerSpec the workers of a multi-node runtime; null for none
     */
    public record PredictorSpec(
            @Nullable String name,
            ComponentExtensionSpec extension,
            @Nullable ModelSpec model,
            PodSpec pod,
            List<StorageUri> storageUris,
            @Nullable String storageContainerName,
            @Nullable WorkerSpec workerSpec) {
        /**
         * Reads a predictor.
         *
         * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a value of a wrong type
         */
        public static PredictorSpec read(ObjectNode tree) {
            return read(tree, "");
        }

        static PredictorSpec read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            return new PredictorSpec(
                    fields.text("name"),
                    ComponentExtensionSpec.read(fields),
                    fields.read("model", ModelSpec::read),
                    PodSpec.read(tree, path),
                    fields.list("storageUris", StorageUri::read),
                    fields.text("storageContainerName"),
                    fields.read("workerSpec", WorkerSpec::read));
        }
    }

    /**
     * The transformer: pre- and postprocessing that this server runs, or custom containers. Storage as in {@link
     * PredictorSpec}.
     *
     * @param builtIn null for none; an extension of Nereid, written {@code nereid}
     */
    public record TransformerSpec(
            ComponentExtensionSpec extension,
            @Nullable BuiltInTransformer builtIn,
            PodSpec pod,
            List<StorageUri> storageUris,
            @Nullable String storageContainerName) {
        static TransformerSpec read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            return new TransformerSpec(
                    ComponentExtensionSpec.read(fields),
                    fields.read("nereid", BuiltInTransformer::read),
                    PodSpec.read(tree, path),
                    fields.list("storageUris", StorageUri::read),
                    fields.text("storageContainerName"));
        }
    }

    /**
     * A transformer that this server runs: a jar in the server's process, or a Python file in a child process.
     *
     * @param storageUri where the jar or the Python file is
     * @param className the transformer's class; null for the only one
     * @param file the jar or Python file among the downloaded ones; null for the default name
     * @param config settings for the transformer
     */
    public record BuiltInTransformer(
            String storageUri,
            @Nullable String className,
            @Nullable String file,
            Map<String, String> config) {
        static BuiltInTransformer read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            return new BuiltInTransformer(
                    fields.text("storageUri", ""), fields.text("class"), fields.text("file"), fields.map("config"));
        }
    }

    /**
     * The explainer: ART, an explainer that is built into the server, or custom containers.
     *
     * @param art null for none
     * @param builtIn null for none; an extension of Nereid, written {@code nereid}
     */
    public record ExplainerSpec(
            ComponentExtensionSpec extension,
            @Nullable ArtExplainer art,
            @Nullable BuiltInExplainer builtIn,
            PodSpec pod,
            List<StorageUri> storageUris,
            @Nullable String storageContainerName) {
        static ExplainerSpec read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            return new ExplainerSpec(
                    ComponentExtensionSpec.read(fields),
                    fields.read("art", ArtExplainer::read),
                    fields.read("nereid", BuiltInExplainer::read),
                    PodSpec.read(tree, path),
                    fields.list("storageUris", StorageUri::read),
                    fields.text("storageContainerName"));
        }
    }

    /** An explainer of the Adversarial Robustness Toolbox. */
    public record ArtExplainer(
            String type,
            @Nullable String storageUri,
            @Nullable String runtimeVersion,
            @Nullable StorageSpec storage,
            Map<String, String> config,
            Container container) {
        static ArtExplainer read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            return new ArtExplainer(
                    fields.text("type", "SquareAttack"),
                    fields.text("storageUri"),
                    fields.text("runtimeVersion"),
                    fields.read("storage", StorageSpec::read),
                    fields.map("config"),
                    Container.read(tree, path));
        }
    }

    /**
     * An explainer that is built into the server.
     *
     * @param method such as {@code shap}
     * @param storageUri files that it needs, such as a background data set; null for none
     * @param config settings of the method
     */
    public record BuiltInExplainer(String method, @Nullable String storageUri, Map<String, String> config) {
        static BuiltInExplainer read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            return new BuiltInExplainer(fields.text("method", ""), fields.text("storageUri"), fields.map("config"));
        }
    }

    /** A canary: a further predictor that receives a percentage of the requests. */
    public record CanarySpec(PredictorSpec predictor, int trafficPercent) {
        static CanarySpec read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            FieldReader predictor = fields.object("predictor");
            return new CanarySpec(
                    PredictorSpec.read(predictor.tree(), predictor.path()), fields.integer("trafficPercent", 0));
        }
    }

    /**
     * The model of a predictor.
     *
     * @param formatName such as {@code sklearn}
     * @param formatVersion null for any
     * @param runtime the name of the runtime; null to select one automatically
     * @param storageUri where its files are; null for none
     * @param storage where its files are, by a key of the storage secret; null for none
     * @param runtimeVersion the tag of the runtime's image; null for the runtime's own
     * @param protocolVersion {@code v1}, {@code v2}, {@code grpc-v1} or {@code grpc-v2}; null for the runtime's
     * @param confidential for encrypted models; null for none
     * @param container the fields that override those of the runtime's container
     */
    public record ModelSpec(
            String formatName,
            @Nullable String formatVersion,
            @Nullable String runtime,
            @Nullable String storageUri,
            @Nullable StorageSpec storage,
            @Nullable String runtimeVersion,
            @Nullable String protocolVersion,
            @Nullable Confidential confidential,
            Container container) {
        static ModelSpec read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            FieldReader format = fields.object("modelFormat");
            return new ModelSpec(
                    format.text("name", ""),
                    format.text("version"),
                    fields.text("runtime"),
                    fields.text("storageUri"),
                    fields.read("storage", StorageSpec::read),
                    fields.text("runtimeVersion"),
                    fields.text("protocolVersion"),
                    fields.read("confidential", Confidential::read),
                    Container.read(tree, path));
        }
    }

    /** Whether the model's files are encrypted, and the key to decrypt them with. */
    public record Confidential(boolean enabled, @Nullable String resourceId) {
        static Confidential read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            return new Confidential(fields.flag("enabled", false), fields.text("resourceId"));
        }
    }

    /**
     * A location in a storage that the secret {@code storage-config} describes.
     *
     * @param path path in the storage; null for none
     * @param key the entry of the secret; null for the default one
     * @param parameters parameters that override those of the entry
     * @param schemaPath where the model's schema is; null for none
     * @param serviceAccountName only for the storage of a logger; null for none
     */
    public record StorageSpec(
            @Nullable String path,
            @Nullable String key,
            Map<String, String> parameters,
            @Nullable String schemaPath,
            @Nullable String serviceAccountName) {
        static StorageSpec read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            return new StorageSpec(
                    fields.text("path"),
                    fields.text("key"),
                    fields.map("parameters"),
                    fields.text("schemaPath"),
                    fields.text("serviceAccountName"));
        }
    }

    /** A URI to download, and the path at which containers see the files. */
    public record StorageUri(String uri, String mountPath) {
        /** The mount path of models that do not name one. */
        public static final String MODELS = "/mnt/models";

        static StorageUri read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            return new StorageUri(fields.text("uri", ""), fields.text("mountPath", MODELS));
        }
    }

    /**
     * The request logger.
     *
     * @param url the sink of the events; null for the configuration's default
     * @param mode {@code all}, {@code request} or {@code response}
     * @param batchSize events per batch; null for 1
     * @param batchInterval how long an incomplete batch waits for more; null for none
     * @param tree the block as it was submitted
     */
    public record LoggerSpec(
            @Nullable String url,
            String mode,
            List<String> metadataHeaders,
            List<String> metadataAnnotations,
            @Nullable StorageSpec storage,
            @Nullable String marshallerUrl,
            @Nullable Integer batchSize,
            @Nullable Duration batchInterval,
            ObjectNode tree) {
        static LoggerSpec read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            return new LoggerSpec(
                    fields.text("url"),
                    fields.text("mode", "all"),
                    fields.texts("metadataHeaders"),
                    fields.texts("metadataAnnotations"),
                    fields.read("storage", StorageSpec::read),
                    fields.text("marshallerUrl"),
                    fields.integer("batchSize"),
                    interval(tree.get("batchInterval")),
                    tree);
        }

        private static @Nullable Duration interval(@Nullable JsonNode node) {
            return node == null || node.isNull() ? null : GoDuration.ofSecondsOrText(node.asText());
        }
    }

    /**
     * How requests are joined.
     *
     * @param maxBatchSize rows; null for the default
     * @param maxLatency milliseconds; null for the default
     * @param timeout seconds; null for none
     */
    public record BatcherSpec(
            @Nullable Integer maxBatchSize,
            @Nullable Integer maxLatency,
            @Nullable Integer timeout) {
        static BatcherSpec read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            return new BatcherSpec(
                    fields.integer("maxBatchSize"), fields.integer("maxLatency"), fields.integer("timeout"));
        }
    }

    /**
     * Scaling by several metrics.
     *
     * @param behavior the behavior of {@code autoscaling/v2}; null for none
     */
    public record AutoScaling(
            List<Metric> metrics, @Nullable ObjectNode behavior) {
        static AutoScaling read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            return new AutoScaling(fields.list("metrics", Metric::read), fields.tree("behavior"));
        }
    }

    /**
     * A metric to scale by.
     *
     * @param type {@code Resource}, {@code External} or {@code PodMetric}
     * @param resource the resource's name for {@code Resource}, or null
     * @param source for {@code External} and {@code PodMetric}: the object under {@code metric}; null otherwise
     * @param targetType {@code Utilization}, {@code AverageValue} or {@code Value}; null for the default
     * @param averageUtilization percent, or null
     * @param averageValue a quantity, or null
     * @param value a quantity, or null
     */
    public record Metric(
            String type,
            @Nullable String resource,
            @Nullable ObjectNode source,
            @Nullable String targetType,
            @Nullable Integer averageUtilization,
            @Nullable String averageValue,
            @Nullable String value) {
        static Metric read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            String type = fields.text("type", "");
            FieldReader block = switch (type) {
                case "External" -> fields.object("external");
                case "PodMetric" -> fields.object("podmetric");
                default -> fields.object("resource");
            };
            FieldReader target = block.object("target");
            return new Metric(
                    type,
                    block.text("name"),
                    block.tree("metric"),
                    target.text("type"),
                    target.integer("averageUtilization"),
                    target.scalar("averageValue"),
                    target.scalar("value"));
        }
    }
}
