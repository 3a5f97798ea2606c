// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind.Column;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The kinds of resources that this server knows, and lookups among them. Immutable. */
public final class ResourceKinds {
    /** KServe's API group. */
    public static final String SERVING = "serving.kserve.io";

    /** {@link InferenceService}. */
    public static final ResourceKind INFERENCE_SERVICE = new ResourceKind(
            SERVING,
            "v1beta1",
            "InferenceService",
            "inferenceservices",
            "inferenceservice",
            List.of("isvc"),
            true,
            List.of(
                    new Column("URL", "string", "where it answers", 0, ".status.url"),
                    new Column(
                            "Ready",
                            "string",
                            "whether it answers",
                            0,
                            ".status.conditions[?(@.type=='Ready')].status"),
                    new Column(
                            "Prev",
                            "integer",
                            "percent of the requests that go to the previous revision",
                            0,
                            ".status.components.predictor.traffic[?(@.tag=='prev')].percent"),
                    new Column(
                            "Latest",
                            "integer",
                            "percent of the requests that go to the newest revision",
                            0,
                            ".status.components.predictor.traffic[?(@.latestRevision==true)].percent"),
                    new Column(
                            "PrevRolledoutRevision",
                            "string",
                            "the last revision that received all requests",
                            0,
                            ".status.components.predictor.traffic[?(@.tag=='prev')].revisionName"),
                    new Column(
                            "LatestReadyRevision",
                            "string",
                            "the newest revision that is ready",
                            0,
                            ".status.components.predictor.traffic[?(@.latestRevision==true)].revisionName"),
                    age()));

    /** {@link ServingRuntime} of one namespace. */
    public static final ResourceKind SERVING_RUNTIME = runtime("ServingRuntime", true);

    /** {@link ServingRuntime} for all namespaces. */
    public static final ResourceKind CLUSTER_SERVING_RUNTIME = runtime("ClusterServingRuntime", false);

    /** {@link InferenceGraph}. */
    public static final ResourceKind INFERENCE_GRAPH = new ResourceKind(
            SERVING,
            "v1alpha1",
            "InferenceGraph",
            "inferencegraphs",
            "inferencegraph",
            List.of("ig"),
            true,
            List.of(
                    new Column("URL", "string", "where it answers", 0, ".status.url"),
                    new Column(
                            "Ready",
                            "string",
                            "whether it answers",
                            0,
                            ".status.conditions[?(@.type=='Ready')].status"),
                    age()));

    /** {@link ClusterStorageContainer}. */
    public static final ResourceKind CLUSTER_STORAGE_CONTAINER = new ResourceKind(
            SERVING,
            "v1alpha1",
            "ClusterStorageContainer",
            "clusterstoragecontainers",
            "clusterstoragecontainer",
            List.of("csc"),
            false,
            List.of(age()));

    /** KServe's LLMInferenceService: a large language model with its router. Checked, but not carried out. */
    public static final ResourceKind LLM_INFERENCE_SERVICE = new ResourceKind(
            SERVING,
            "v1alpha2",
            "LLMInferenceService",
            "llminferenceservices",
            "llminferenceservice",
            List.of("llmisvc"),
            true,
            List.of(
                    new Column("URL", "string", "where it answers", 0, ".status.url"),
                    ready(),
                    reason(),
                    age(),
                    new Column("URLs", "string", "all addresses", 1, ".status.addresses[*].url")),
            List.of("v1alpha1"));

    /** KServe's LLMInferenceServiceConfig: fields that LLMInferenceServices share. */
    public static final ResourceKind LLM_INFERENCE_SERVICE_CONFIG = new ResourceKind(
            SERVING,
            "v1alpha2",
            "LLMInferenceServiceConfig",
            "llminferenceserviceconfigs",
            "llminferenceserviceconfig",
            List.of(),
            true,
            List.of(ready(), reason(), age()),
            List.of("v1alpha1"));

    /** KServe's TrainedModel: a model of an InferenceService that serves many. */
    public static final ResourceKind TRAINED_MODEL = new ResourceKind(
            SERVING,
            "v1alpha1",
            "TrainedModel",
            "trainedmodels",
            "trainedmodel",
            List.of("tm"),
            true,
            List.of(new Column("URL", "string", "where it answers", 0, ".status.url"), ready(), age()));

    /** KServe's LocalModelCache: a model that is downloaded before services need it. */
    public static final ResourceKind LOCAL_MODEL_CACHE = localModel("LocalModelCache", false, copies());

    /** KServe's LocalModelNamespaceCache: the same with the credentials of its namespace. */
    public static final ResourceKind LOCAL_MODEL_NAMESPACE_CACHE =
            localModel("LocalModelNamespaceCache", true, copies());

    /** KServe's LocalModelNodeGroup: the limit for the sizes of models. */
    public static final ResourceKind LOCAL_MODEL_NODE_GROUP = localModel(
            "LocalModelNodeGroup",
            false,
            List.of(
                    new Column("Limit", "string", "bytes that models may have", 0, ".spec.storageLimit"),
                    new Column("Used", "string", "bytes that models have", 0, ".status.used"),
                    age()));

    /** KServe's LocalModelNode: the models of one machine, written by the server. */
    public static final ResourceKind LOCAL_MODEL_NODE = localModel("LocalModelNode", false, List.of(age()));

    /** Kubernetes' Secret: credentials. */
    public static final ResourceKind SECRET = core(
            "Secret",
            "secrets",
            List.of(),
            true,
            List.of(new Column("Type", "string", "the type of the data", 0, ".type"), data(), age()));

    /** Kubernetes' ConfigMap: settings. */
    public static final ResourceKind CONFIG_MAP =
            core("ConfigMap", "configmaps", List.of("cm"), true, List.of(data(), age()));

    /** Kubernetes' ServiceAccount: names the secrets that a service uses. */
    public static final ResourceKind SERVICE_ACCOUNT =
            core("ServiceAccount", "serviceaccounts", List.of("sa"), true, List.of(age()));

    /** Kubernetes' Namespace. */
    public static final ResourceKind NAMESPACE = core(
            "Namespace",
            "namespaces",
            List.of("ns"),
            false,
            List.of(new Column("Status", "string", "the phase", 0, ".status.phase"), age()));

    /** Kubernetes' Event: an occurrence that concerns another resource. */
    public static final ResourceKind EVENT = core(
            "Event",
            "events",
            List.of("ev"),
            true,
            List.of(
                    new Column("Last Seen", "date", "the time of the last occurrence", 0, ".lastTimestamp"),
                    new Column("Type", "string", "Normal or Warning", 0, ".type"),
                    new Column("Reason", "string", "the reason as one word", 0, ".reason"),
                    new Column("Object", "string", "the resource that it concerns", 0, ".involvedObject.name"),
                    new Column("Message", "string", "a description of the event", 0, ".message")));

    private static final List<ResourceKind> ALL = List.of(
            INFERENCE_SERVICE,
            SERVING_RUNTIME,
            CLUSTER_SERVING_RUNTIME,
            INFERENCE_GRAPH,
            CLUSTER_STORAGE_CONTAINER,
            LLM_INFERENCE_SERVICE,
            LLM_INFERENCE_SERVICE_CONFIG,
            TRAINED_MODEL,
            LOCAL_MODEL_CACHE,
            LOCAL_MODEL_NAMESPACE_CACHE,
            LOCAL_MODEL_NODE_GROUP,
            LOCAL_MODEL_NODE,
            NAMESPACE,
            SECRET,
            CONFIG_MAP,
            SERVICE_ACCOUNT,
            EVENT);

    /** KServe's kinds that this server does not support, and what to do instead. */
    private static final Map<String, String> UNSUPPORTED =
            Map.ofEntries(Map.entry("Predictor", "write an InferenceService, which takes the same model"));

    private ResourceKinds() {}

    /**
     * The kind of a resource, by its {@code apiVersion} and {@code kind}.
     *
     * @throws ServingException INVALID_ARGUMENT for an unknown kind; the message contains what to do instead
     */
    public static ResourceKind of(ObjectNode resource) {
        String apiVersion = resource.path("apiVersion").asText("");
        String name = resource.path("kind").asText("");
        if (apiVersion.isEmpty() || name.isEmpty()) {
            throw ServingException.invalidArgument(
                    "not a resource: " + (name.isEmpty() ? "kind" : "apiVersion") + " is missing",
                    "a resource begins with apiVersion and kind, such as serving.kserve.io/v1beta1 and"
                            + " InferenceService");
        }
        ResourceKind kind = byKind(apiVersion, name);
        if (kind != null) {
            return kind;
        }
        String shown = ValidationErrors.clip(apiVersion) + " " + ValidationErrors.clip(name);
        for (ResourceKind one : ALL) {
            boolean known = one.kind().equals(name);
            boolean family = apiVersion.startsWith(SERVING + "/")
                    || apiVersion.startsWith("serving.kubeflow.org/")
                    || (one.group().isEmpty() && apiVersion.equals("v1"));
            if (known && family) {
                throw ServingException.invalidArgument(
                        "there is no " + shown + " here", "write apiVersion: " + one.apiVersion());
            }
        }
        if (apiVersion.startsWith(SERVING + "/")) {
            String instead = UNSUPPORTED.get(name);
            List<String> names = ALL.stream()
                    .filter(one -> one.group().equals(SERVING))
                    .map(ResourceKind::kind)
                    .toList();
            throw ServingException.invalidArgument(
                    "there is no " + shown + " here",
                    instead != null
                            ? instead
                            : "known are " + String.join(", ", names) + ValidationErrors.didYouMean(name, names));
        }
        List<String> names = ALL.stream().map(ResourceKind::kind).toList();
        throw ServingException.invalidArgument(
                "there is no " + shown + " here",
                "this server keeps " + String.join(", ", names) + "; the rest is for a cluster"
                        + ValidationErrors.didYouMean(name, names));
    }

    /** All kinds. */
    public static List<ResourceKind> all() {
        return ALL;
    }

    /** Whether a kind is one of those for models that are downloaded in advance. */
    public static boolean isLocalModel(ResourceKind kind) {
        return kind.group().equals(SERVING) && kind.kind().startsWith("LocalModel");
    }

    /** The kinds of KServe's group that are refused, with what to do instead. */
    public static Map<String, String> unsupported() {
        return UNSUPPORTED;
    }

    /** The kind with this plural in the group, or null. */
    public static @Nullable ResourceKind byPlural(String group, String plural) {
        for (ResourceKind kind : ALL) {
            if (kind.group().equals(group) && kind.plural().equals(plural)) {
                return kind;
            }
        }
        return null;
    }

    /** The kind of this {@code apiVersion} and {@code kind}, in that version; null if there is none. */
    public static @Nullable ResourceKind byKind(String apiVersion, String kind) {
        for (ResourceKind one : ALL) {
            if (one.apiVersion().equals(apiVersion) && one.kind().equals(kind)) {
                return one;
            }
            for (String alternate : one.alternates()) {
                if (one.kind().equals(kind) && apiVersion.equals(one.group() + "/" + alternate)) {
                    return one.inVersion(alternate);
                }
            }
        }
        return null;
    }

    private static ResourceKind runtime(String kind, boolean namespaced) {
        String lower = kind.toLowerCase(java.util.Locale.ROOT);
        return new ResourceKind(
                SERVING,
                "v1alpha1",
                kind,
                lower + "s",
                lower,
                List.of(),
                namespaced,
                List.of(
                        new Column("Disabled", "boolean", "excluded from selection", 0, ".spec.disabled"),
                        new Column(
                                "ModelType",
                                "string",
                                "the model formats that it serves",
                                0,
                                ".spec.supportedModelFormats[*].name"),
                        new Column("Containers", "string", "names of the containers", 0, ".spec.containers[*].name"),
                        age()));
    }

    private static ResourceKind localModel(String kind, boolean namespaced, List<Column> columns) {
        String lower = kind.toLowerCase(java.util.Locale.ROOT);
        return new ResourceKind(SERVING, "v1alpha1", kind, lower + "s", lower, List.of(), namespaced, columns);
    }

    private static List<Column> copies() {
        return List.of(
                new Column("Source", "string", "where the model comes from", 0, ".spec.sourceModelUri"),
                new Column("Available", "integer", "downloaded copies", 0, ".status.copies.available"),
                new Column("Total", "integer", "expected copies", 0, ".status.copies.total"),
                age());
    }

    private static ResourceKind core(
            String kind, String plural, List<String> shortNames, boolean namespaced, List<Column> columns) {
        return new ResourceKind(
                "", "v1", kind, plural, kind.toLowerCase(java.util.Locale.ROOT), shortNames, namespaced, columns);
    }

    private static Column data() {
        return new Column("Data", "integer", "the number of entries", 0, ".data");
    }

    private static Column ready() {
        return new Column("Ready", "string", "whether it answers", 0, ".status.conditions[?(@.type=='Ready')].status");
    }

    private static Column reason() {
        return new Column(
                "Reason", "string", "why it does not answer", 0, ".status.conditions[?(@.type=='Ready')].reason");
    }

    private static Column age() {
        return new Column("Age", "date", "the time of creation", 0, ".metadata.creationTimestamp");
    }
}
