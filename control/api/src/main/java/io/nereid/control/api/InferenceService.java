// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.PodSpec.WorkerSpec;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A model that is served: {@code serving.kserve.io/v1beta1 InferenceService}. The records are of a tree that {@link Admission}
 * has let in: the blocks of single frameworks have become {@code model}. Immutable as long as nobody changes the trees.
 *
 * @param metadata who it is
 * @param predictor runs the model
 * @param transformer works on requests before and on answers after the predictor; null for none
 * @param explainer explains the predictor's answers; null for none
 * @param canary further predictors that take shares of the requests
 * @param status as it was written last; empty before
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

    /** The name of the container that answers the requests. */
    public static final String MAIN_CONTAINER = "kserve-container";

    /** The name of the container that transforms requests in the predictor's own pod. */
    public static final String TRANSFORMER_CONTAINER = "transformer-container";

    /**
     * Reads a service that was admitted.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a value of a wrong type
     */
    public static InferenceService read(ObjectNode resource) {
        Fields fields = Fields.of(resource);
        Fields spec = fields.object("spec");
        Fields predictor = spec.object("predictor");
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
     * What every component may have.
     *
     * @param minReplicas null for the default of 1; 0 may scale to zero
     * @param maxReplicas 0 for no limit
     * @param scaleTarget of the metric per replica; null for the default
     * @param scaleMetric {@code concurrency}, {@code rps}, {@code cpu} or {@code memory}; null for the default
     * @param scaleMetricType {@code Utilization} or {@code AverageValue}; null for the default
     * @param autoScaling more than one metric, and behaviour; null for none
     * @param containerConcurrency most requests at once in one replica; null and 0 for no limit
     * @param timeout seconds for one request; null for the default
     * @param canaryTrafficPercent the newest revision's share; null for all
     * @param logger what is logged; null for nothing
     * @param batcher how requests are joined; null for not
     * @param labels more labels
     * @param annotations more annotations
     * @param deploymentStrategy as of {@code apps/v1}; null for none
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
        static ComponentExtensionSpec read(Fields fields) {
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
     * The predictor: a model, or containers of one's own.
     *
     * @param name part of the names of what runs; null for none
     * @param extension what every component may have
     * @param model null when the containers serve the model by themselves
     * @param pod its containers and other fields of a pod
     * @param storageUris what is fetched to which paths
     * @param storageContainerName the ClusterStorageContainer to use; null for whichever fits
     * @param workerSpec the workers of a runtime on several machines; null for none
     */
    public record PredictorSpec(
            @Nullable String name,
            ComponentExtensionSpec extension,
            @Nullable ModelSpec model,
            PodSpec pod,
            List<StorageUri> storageUris,
            @Nullable String storageContainerName,
            @Nullable WorkerSpec workerSpec) {
        static PredictorSpec read(ObjectNode tree, String path) {
            Fields fields = new Fields(tree, path);
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
     * The transformer: steps that this server runs, or containers of one's own; storage as in {@link PredictorSpec}.
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
            Fields fields = new Fields(tree, path);
            return new TransformerSpec(
                    ComponentExtensionSpec.read(fields),
                    fields.read("nereid", BuiltInTransformer::read),
                    PodSpec.read(tree, path),
                    fields.list("storageUris", StorageUri::read),
                    fields.text("storageContainerName"));
        }
    }

    /**
     * Steps before and after the predictor that this server runs: of a jar in its process, of a Python file beside it.
     *
     * @param storageUri where the jar or the Python file is
     * @param className the class of the steps; null for the only one
     * @param file the jar or Python file among the fetched ones; null for the one that is expected
     * @param config settings for the steps
     */
    public record BuiltInTransformer(
            String storageUri,
            @Nullable String className,
            @Nullable String file,
            Map<String, String> config) {
        static BuiltInTransformer read(ObjectNode tree, String path) {
            Fields fields = new Fields(tree, path);
            return new BuiltInTransformer(
                    fields.text("storageUri", ""), fields.text("class"), fields.text("file"), fields.map("config"));
        }
    }

    /**
     * The explainer: ART, one that comes with the server, or containers of one's own.
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
            Fields fields = new Fields(tree, path);
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
            Fields fields = new Fields(tree, path);
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
     * An explainer that comes with the server.
     *
     * @param method such as {@code shap}
     * @param storageUri files that it needs, such as a background sample; null for none
     * @param config its settings
     */
    public record BuiltInExplainer(String method, @Nullable String storageUri, Map<String, String> config) {
        static BuiltInExplainer read(ObjectNode tree, String path) {
            Fields fields = new Fields(tree, path);
            return new BuiltInExplainer(fields.text("method", ""), fields.text("storageUri"), fields.map("config"));
        }
    }

    /** A further predictor with a share of the requests. */
    public record CanarySpec(PredictorSpec predictor, int trafficPercent) {
        static CanarySpec read(ObjectNode tree, String path) {
            Fields fields = new Fields(tree, path);
            Fields predictor = fields.object("predictor");
            return new CanarySpec(
                    PredictorSpec.read(predictor.tree(), predictor.path()), fields.integer("trafficPercent", 0));
        }
    }

    /**
     * A model.
     *
     * @param formatName such as {@code sklearn}
     * @param formatVersion null for any
     * @param runtime the runtime by name; null to choose one
     * @param storageUri where its files are; null for none
     * @param storage where its files are, by a key of the storage secret; null for none
     * @param runtimeVersion the tag of the runtime's image; null for the runtime's own
     * @param protocolVersion {@code v1}, {@code v2}, {@code grpc-v1} or {@code grpc-v2}; null for the runtime's
     * @param confidential for encrypted models; null for none
     * @param container what overrides the runtime's container
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
            Fields fields = new Fields(tree, path);
            Fields format = fields.object("modelFormat");
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

    /** Encrypted models. */
    public record Confidential(boolean enabled, @Nullable String resourceId) {
        static Confidential read(ObjectNode tree, String path) {
            Fields fields = new Fields(tree, path);
            return new Confidential(fields.flag("enabled", false), fields.text("resourceId"));
        }
    }

    /**
     * Files in a storage that the secret {@code storage-config} describes.
     *
     * @param path in the storage; null for none
     * @param key the secret's entry; null for the default one
     * @param parameters what overrides the entry
     * @param schemaPath where the model's schema is; null for none
     * @param serviceAccountName of a logger's storage only; null for none
     */
    public record StorageSpec(
            @Nullable String path,
            @Nullable String key,
            Map<String, String> parameters,
            @Nullable String schemaPath,
            @Nullable String serviceAccountName) {
        static StorageSpec read(ObjectNode tree, String path) {
            Fields fields = new Fields(tree, path);
            return new StorageSpec(
                    fields.text("path"),
                    fields.text("key"),
                    fields.map("parameters"),
                    fields.text("schemaPath"),
                    fields.text("serviceAccountName"));
        }
    }

    /** What is fetched, and the path at which it is seen. */
    public record StorageUri(String uri, String mountPath) {
        /** Where models are seen that name no path. */
        public static final String MODELS = "/mnt/models";

        static StorageUri read(ObjectNode tree, String path) {
            Fields fields = new Fields(tree, path);
            return new StorageUri(fields.text("uri", ""), fields.text("mountPath", MODELS));
        }
    }

    /**
     * What is logged.
     *
     * @param url where to; null for the configuration's
     * @param mode {@code all}, {@code request} or {@code response}
     * @param batchSize null for 1
     * @param batchInterval seconds; null for none
     * @param tree the block as it is written
     */
    public record LoggerSpec(
            @Nullable String url,
            String mode,
            List<String> metadataHeaders,
            List<String> metadataAnnotations,
            @Nullable StorageSpec storage,
            @Nullable String marshallerUrl,
            @Nullable Integer batchSize,
            @Nullable Long batchInterval,
            ObjectNode tree) {
        static LoggerSpec read(ObjectNode tree, String path) {
            Fields fields = new Fields(tree, path);
            return new LoggerSpec(
                    fields.text("url"),
                    fields.text("mode", "all"),
                    fields.texts("metadataHeaders"),
                    fields.texts("metadataAnnotations"),
                    fields.read("storage", StorageSpec::read),
                    fields.text("marshallerUrl"),
                    fields.integer("batchSize"),
                    fields.number("batchInterval"),
                    tree);
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
            Fields fields = new Fields(tree, path);
            return new BatcherSpec(
                    fields.integer("maxBatchSize"), fields.integer("maxLatency"), fields.integer("timeout"));
        }
    }

    /**
     * Several metrics.
     *
     * @param behavior as of {@code autoscaling/v2}; null for none
     */
    public record AutoScaling(
            List<Metric> metrics, @Nullable ObjectNode behavior) {
        static AutoScaling read(ObjectNode tree, String path) {
            Fields fields = new Fields(tree, path);
            return new AutoScaling(fields.list("metrics", Metric::read), fields.tree("behavior"));
        }
    }

    /**
     * One metric.
     *
     * @param type {@code Resource}, {@code External} or {@code PodMetric}
     * @param resource the resource's name for {@code Resource}, or null
     * @param source for {@code External} and {@code PodMetric}: what stands under {@code metric}; null otherwise
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
            Fields fields = new Fields(tree, path);
            String type = fields.text("type", "");
            Fields block = switch (type) {
                case "External" -> fields.object("external");
                case "PodMetric" -> fields.object("podmetric");
                default -> fields.object("resource");
            };
            Fields target = block.object("target");
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
