// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.schema;

import static io.nereid.control.api.schema.StructuralSchema.FLAG;
import static io.nereid.control.api.schema.StructuralSchema.INT;
import static io.nereid.control.api.schema.StructuralSchema.LONG;
import static io.nereid.control.api.schema.StructuralSchema.QUANTITY;
import static io.nereid.control.api.schema.StructuralSchema.TEXT;
import static io.nereid.control.api.schema.StructuralSchema.TEXTS;
import static io.nereid.control.api.schema.StructuralSchema.TEXT_LIST;
import static io.nereid.control.api.schema.StructuralSchema.TREE;
import static io.nereid.control.api.schema.StructuralSchema.enumOf;
import static io.nereid.control.api.schema.StructuralSchema.list;
import static io.nereid.control.api.schema.StructuralSchema.map;
import static io.nereid.control.api.schema.StructuralSchema.object;
import static io.nereid.control.api.schema.StructuralSchema.oneOf;

import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.schema.StructuralSchema.Shape;
import java.util.List;

/** The structural schemas of the kinds of resources. Immutable. */
public final class ResourceSchemas {
    /** The framework blocks of a predictor, which defaulting rewrites to {@code model}. */
    public static final List<String> FRAMEWORKS = List.of(
            "sklearn",
            "xgboost",
            "tensorflow",
            "pytorch",
            "triton",
            "onnx",
            "huggingface",
            "pmml",
            "lightgbm",
            "paddle");

    private static final StructuralSchema PROTOCOL = oneOf("v1", "v2", "grpc-v1", "grpc-v2");

    private static final Shape STORAGE =
            object().with(TEXT, "path", "key", "schemaPath").with(TEXTS, "parameters");

    private static final Shape TARGET = object().with(enumOf("Utilization", "Value", "AverageValue"), "type")
            .with(INT, "averageUtilization")
            .with(QUANTITY, "averageValue", "value");

    private static final Shape AUTOSCALING = object().with(
                    list(object().with(enumOf("Resource", "External", "PodMetric"), "type")
                            .with(
                                    object().with(enumOf("cpu", "memory"), "name")
                                            .with(TARGET, "target")
                                            .required("name"),
                                    "resource")
                            .with(
                                    object().with(
                                                    object().with(enumOf("prometheus", "graphite"), "backend")
                                                            .with(TEXT, "serverAddress", "query", "namespace"),
                                                    "metric")
                                            .with(
                                                    object().with(TEXT, "authModes")
                                                            .with(object().with(TEXT, "name"), "authenticationRef"),
                                                    "authenticationRef")
                                            .with(TARGET, "target"),
                                    "external")
                            .with(
                                    object().with(
                                                    object().with(enumOf("opentelemetry"), "backend")
                                                            .with(TEXT, "serverAddress", "query", "operationOverTime")
                                                            .with(TEXT_LIST, "metricNames"),
                                                    "metric")
                                            .with(TARGET, "target"),
                                    "podmetric")
                            .required("type")),
                    "metrics")
            .with(
                    object().with(
                                    object().with(INT, "stabilizationWindowSeconds")
                                            .with(oneOf("Max", "Min", "Disabled"), "selectPolicy")
                                            .with(
                                                    list(object().with(oneOf("Pods", "Percent"), "type")
                                                            .with(INT, "value", "periodSeconds")
                                                            .required("type", "value", "periodSeconds")),
                                                    "policies")
                                            .with(QUANTITY, "tolerance"),
                                    "scaleUp",
                                    "scaleDown"),
                    "behavior");

    private static final Shape LOGGER = object().with(TEXT, "url", "marshallerUrl")
            .with(enumOf("all", "request", "response"), "mode")
            .with(TEXT_LIST, "metadataHeaders", "metadataAnnotations")
            .with(STORAGE.with(TEXT, "serviceAccountName"), "storage")
            .with(INT, "batchSize")
            .with(StructuralSchema.INTERVAL, "batchInterval");

    private static final Shape EXTENSION = object().with(INT, "minReplicas", "maxReplicas", "scaleTarget")
            .with(enumOf("cpu", "memory", "concurrency", "rps"), "scaleMetric")
            .with(oneOf("Utilization", "AverageValue"), "scaleMetricType")
            .with(AUTOSCALING, "autoScaling")
            .with(LONG, "containerConcurrency", "timeout", "canaryTrafficPercent")
            .with(LOGGER, "logger")
            .with(object().with(INT, "maxBatchSize", "maxLatency", "timeout"), "batcher")
            .with(TEXTS, "labels", "annotations")
            .with(
                    object().with(oneOf("RollingUpdate", "Recreate"), "type")
                            .with(
                                    object().with(StructuralSchema.INT_OR_TEXT, "maxSurge", "maxUnavailable"),
                                    "rollingUpdate"),
                    "deploymentStrategy");

    private static final StructuralSchema STORAGE_URIS =
            list(object().with(TEXT, "uri", "mountPath").required("uri"));

    private static final Shape PARALLEL_SIZES = object().with(INT, "pipelineParallelSize", "tensorParallelSize");

    private static final Shape WORKERS = PodSchemas.POD.with(PARALLEL_SIZES);

    private static final Shape FRAMEWORK = PodSchemas.CONTAINER
            .with(TEXT, "storageUri", "runtimeVersion")
            .with(PROTOCOL, "protocolVersion")
            .with(STORAGE, "storage")
            .with(object().with(FLAG, "enabled").with(TEXT, "resourceId"), "confidential")
            .hint("storageUris", "storageUris belongs beside the model, in the predictor itself");

    private static final Shape MODEL = FRAMEWORK
            .with(object().with(TEXT, "name", "version").required("name"), "modelFormat")
            .with(TEXT, "runtime")
            .required("modelFormat")
            .hint("framework", "write modelFormat: {name: ...}")
            .hint("format", "write modelFormat: {name: ...}");

    private static final Shape COMPONENT = PodSchemas.POD
            .with(EXTENSION)
            .with(STORAGE_URIS, "storageUris")
            .with(TEXT, "storageContainerName")
            .hint("container", "write containers, a list")
            .hint("replicas", "write minReplicas and maxReplicas")
            .hint("custom", "write the containers directly under the component")
            .hint("storageUri", "storageUri belongs in the model block");

    private static final Shape PREDICTOR = COMPONENT
            .with(TEXT, "name")
            .with(MODEL, "model")
            .with(FRAMEWORK, FRAMEWORKS.toArray(String[]::new))
            .with(WORKERS, "workerSpec")
            .hint("modelFormat", "modelFormat belongs in the model block")
            .hint("runtime", "runtime belongs in the model block")
            .hint("protocolVersion", "protocolVersion belongs in the model block");

    private static final Shape TRANSFORMER = COMPONENT
            .with(
                    object().with(TEXT, "storageUri", "class", "file")
                            .with(TEXTS, "config")
                            .required("storageUri"),
                    "nereid")
            .hint("storageUri", "storageUri belongs in the nereid block, or write storageUris beside containers");

    private static final String NO_EXPLAINER =
            " was removed from KServe's API; write nereid: {method: shap} for an explainer that comes with this server,"
                    + " or containers of your own";

    private static final Shape EXPLAINER = COMPONENT
            .with(
                    PodSchemas.CONTAINER
                            .with(oneOf("SquareAttack"), "type")
                            .with(TEXT, "storageUri", "runtimeVersion")
                            .with(STORAGE, "storage")
                            .with(TEXTS, "config"),
                    "art")
            .with(
                    object().with(TEXT, "method", "storageUri")
                            .with(TEXTS, "config")
                            .required("method"),
                    "nereid")
            .hint("alibi", "alibi" + NO_EXPLAINER)
            .hint("aix", "aix" + NO_EXPLAINER)
            .hint("aif", "aif" + NO_EXPLAINER);

    static final Shape INFERENCE_SERVICE = resource(object().with(PREDICTOR, "predictor")
                    .with(TRANSFORMER, "transformer")
                    .with(EXPLAINER, "explainer")
                    .with(
                            list(object().with(PREDICTOR, "predictor")
                                    .with(INT, "trafficPercent")
                                    .required("predictor")),
                            "canary")
                    .required("predictor")
                    .hint("default", "this is KServe's v1alpha2; write predictor, transformer and explainer under spec")
                    .hint("canaryTrafficPercent", "canaryTrafficPercent belongs in the predictor")
                    .hint("model", "model belongs in the predictor"))
            .with(TREE, "status");

    static final Shape SERVING_RUNTIME = resource(runtimePod()
                    .with(list(PodSchemas.CONTAINER.required("name")), "containers")
                    .with(
                            list(object().with(TEXT, "name", "version")
                                    .with(FLAG, "autoSelect")
                                    .with(StructuralSchema.integer(1, Integer.MAX_VALUE), "priority")
                                    .required("name")),
                            "supportedModelFormats")
                    .with(list(PROTOCOL), "protocolVersions")
                    .with(FLAG, "multiModel", "disabled")
                    .with(runtimePod().with(PARALLEL_SIZES).with(TEXTS, "labels", "annotations"), "workerSpec")
                    .with(TEXTS, "labels", "annotations")
                    .with(TEXT, "grpcEndpoint", "grpcDataEndpoint", "httpDataEndpoint")
                    .with(INT, "replicas")
                    .with(object().with(FLAG, "disabled"), "storageHelper")
                    .with(
                            object().with(TEXT, "serverType")
                                    .with(INT, "runtimeManagementPort", "memBufferBytes", "modelLoadingTimeoutMillis")
                                    .with(list(PodSchemas.ENV), "env"),
                            "builtInAdapter")
                    .required("containers"))
            .with(TREE, "status");

    static final Shape INFERENCE_GRAPH = resource(object().with(
                            map(object().with(enumOf("Sequence", "Splitter", "Ensemble", "Switch"), "routerType")
                                    .with(
                                            list(object().with(
                                                            TEXT,
                                                            "name",
                                                            "nodeName",
                                                            "serviceName",
                                                            "serviceUrl",
                                                            "data",
                                                            "condition")
                                                    .with(LONG, "weight")
                                                    .with(enumOf("Soft", "Hard"), "dependency")
                                                    .with(FLAG, "mapPredictionsToInstances")),
                                            "steps")
                                    .required("routerType")),
                            "nodes")
                    .with(PodSchemas.RESOURCES, "resources")
                    .with(PodSchemas.AFFINITY, "affinity")
                    .with(LONG, "timeout")
                    .with(
                            object().with(LONG, "serverRead", "serverWrite", "serverIdle", "serviceClient"),
                            "routerTimeouts")
                    .with(INT, "minReplicas", "maxReplicas", "scaleTarget")
                    .with(enumOf("cpu", "memory", "concurrency", "rps"), "scaleMetric")
                    .with(PodSchemas.TOLERATIONS, "tolerations")
                    .with(TEXTS, "nodeSelector")
                    .with(TEXT, "nodeName", "serviceAccountName")
                    .required("nodes"))
            .with(TREE, "status");

    static final Shape STORAGE_CONTAINER = resource(object().with(PodSchemas.CONTAINER.required("name"), "container")
                    .with(list(object().with(TEXT, "prefix", "regex")), "supportedUriFormats")
                    .with(oneOf("initContainer", "localModelDownloadJob"), "workloadType")
                    .with(FLAG, "supportsMultiModelDownload")
                    .required("container", "supportedUriFormats"))
            .with(FLAG, "disabled");

    static final Shape TRAINED_MODEL = resource(object().with(TEXT, "inferenceService")
                    .with(
                            object().with(TEXT, "storageUri", "framework")
                                    .with(QUANTITY, "memory")
                                    .required("storageUri", "framework", "memory"),
                            "model")
                    .required("inferenceService", "model"))
            .with(TREE, "status");

    static final Shape SECRET = PodSchemas.RESOURCE
            .with(TEXTS, "data", "stringData")
            .with(TEXT, "type")
            .with(FLAG, "immutable");

    static final Shape CONFIG_MAP =
            PodSchemas.RESOURCE.with(TEXTS, "data", "binaryData").with(FLAG, "immutable");

    static final Shape SERVICE_ACCOUNT = PodSchemas.RESOURCE
            .with(
                    list(object().with(
                                    TEXT,
                                    "apiVersion",
                                    "kind",
                                    "name",
                                    "namespace",
                                    "fieldPath",
                                    "resourceVersion",
                                    "uid")),
                    "secrets")
            .with(list(object().with(TEXT, "name")), "imagePullSecrets")
            .with(FLAG, "automountServiceAccountToken");

    static final Shape NAMESPACE = PodSchemas.RESOURCE
            .with(object().with(TEXT_LIST, "finalizers"), "spec")
            .with(TREE, "status");

    static final Shape EVENT = PodSchemas.RESOURCE
            .with(TREE, "involvedObject", "source", "series", "related")
            .with(
                    TEXT,
                    "reason",
                    "message",
                    "firstTimestamp",
                    "lastTimestamp",
                    "eventTime",
                    "type",
                    "action",
                    "reportingComponent",
                    "reportingInstance")
            .with(INT, "count");

    private ResourceSchemas() {}

    /** The pod's fields of a runtime; others are refused with the place where they belong. */
    private static Shape runtimePod() {
        Shape pod = PodSchemas.RUNTIME_POD;
        for (String field : List.of(
                "initContainers",
                "serviceAccountName",
                "securityContext",
                "terminationGracePeriodSeconds",
                "topologySpreadConstraints",
                "priorityClassName",
                "runtimeClassName",
                "hostNetwork",
                "dnsPolicy")) {
            pod = pod.hint(field, "it belongs in the predictor of the service");
        }
        return pod;
    }

    public static Shape of(ResourceKind kind) {
        return switch (kind.kind()) {
            case "InferenceService" -> INFERENCE_SERVICE;
            case "ServingRuntime", "ClusterServingRuntime" -> SERVING_RUNTIME;
            case "InferenceGraph" -> INFERENCE_GRAPH;
            case "ClusterStorageContainer" -> STORAGE_CONTAINER;
            case "LLMInferenceService" -> LanguageModelSchemas.SERVICE;
            case "LLMInferenceServiceConfig" -> LanguageModelSchemas.CONFIG;
            case "TrainedModel" -> TRAINED_MODEL;
            case "LocalModelCache", "LocalModelNamespaceCache" -> LocalModelSchemas.CACHE;
            case "LocalModelNodeGroup" -> LocalModelSchemas.NODE_GROUP;
            case "LocalModelNode" -> LocalModelSchemas.NODE;
            case "Secret" -> SECRET;
            case "ConfigMap" -> CONFIG_MAP;
            case "ServiceAccount" -> SERVICE_ACCOUNT;
            case "Namespace" -> NAMESPACE;
            default -> EVENT;
        };
    }

    static Shape resource(Shape spec) {
        return PodSchemas.RESOURCE.with(spec, "spec").required("spec");
    }
}
