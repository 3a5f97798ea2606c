// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.Kind.Column;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The kinds of resources there are. Immutable. */
public final class Kinds {
    /** KServe's group. */
    public static final String SERVING = "serving.kserve.io";

    private static final String LANGUAGE_MODELS =
            "large language models are not served by this kind here; use an InferenceService with containers that have a"
                    + " command";

    private static final String CACHE =
            "models are kept in one cache for all services by themselves; leave this resource out";

    /** A served model. */
    public static final Kind INFERENCE_SERVICE = new Kind(
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
                            "percent of the requests that go to the revision before",
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
                            "the revision that had all requests before",
                            0,
                            ".status.components.predictor.traffic[?(@.tag=='prev')].revisionName"),
                    new Column(
                            "LatestReadyRevision",
                            "string",
                            "the newest revision that answers",
                            0,
                            ".status.components.predictor.traffic[?(@.latestRevision==true)].revisionName"),
                    age()));

    /** How models are run, for one namespace. */
    public static final Kind SERVING_RUNTIME = runtime("ServingRuntime", true);

    /** How models are run, for all namespaces. */
    public static final Kind CLUSTER_SERVING_RUNTIME = runtime("ClusterServingRuntime", false);

    /** Services that work together. */
    public static final Kind INFERENCE_GRAPH = new Kind(
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

    /** Who fetches which URIs. */
    public static final Kind CLUSTER_STORAGE_CONTAINER = new Kind(
            SERVING,
            "v1alpha1",
            "ClusterStorageContainer",
            "clusterstoragecontainers",
            "clusterstoragecontainer",
            List.of("csc"),
            false,
            List.of(age()));

    /** Credentials. */
    public static final Kind SECRET = core(
            "Secret",
            "secrets",
            List.of(),
            true,
            List.of(new Column("Type", "string", "what it is for", 0, ".type"), age()));

    /** Settings. */
    public static final Kind CONFIG_MAP = core("ConfigMap", "configmaps", List.of("cm"), true, List.of(age()));

    /** Whose credentials a service uses. */
    public static final Kind SERVICE_ACCOUNT =
            core("ServiceAccount", "serviceaccounts", List.of("sa"), true, List.of(age()));

    /** A space of names. */
    public static final Kind NAMESPACE = core(
            "Namespace",
            "namespaces",
            List.of("ns"),
            false,
            List.of(new Column("Status", "string", "its phase", 0, ".status.phase"), age()));

    /** Something that happened. */
    public static final Kind EVENT = core(
            "Event",
            "events",
            List.of("ev"),
            true,
            List.of(
                    new Column("Last Seen", "date", "when it was last seen", 0, ".lastTimestamp"),
                    new Column("Type", "string", "Normal or Warning", 0, ".type"),
                    new Column("Reason", "string", "in one word", 0, ".reason"),
                    new Column("Object", "string", "what it is about", 0, ".involvedObject.name"),
                    new Column("Message", "string", "for people", 0, ".message")));

    private static final List<Kind> ALL = List.of(
            INFERENCE_SERVICE,
            SERVING_RUNTIME,
            CLUSTER_SERVING_RUNTIME,
            INFERENCE_GRAPH,
            CLUSTER_STORAGE_CONTAINER,
            NAMESPACE,
            SECRET,
            CONFIG_MAP,
            SERVICE_ACCOUNT,
            EVENT);

    /** Kinds of KServe that are not here, and what to do instead. */
    private static final Map<String, String> ELSEWHERE = Map.ofEntries(
            Map.entry(
                    "TrainedModel",
                    "give every model an InferenceService of its own, or put the models into one"
                            + " repository and serve that with the format triton"),
            Map.entry("LLMInferenceService", LANGUAGE_MODELS),
            Map.entry("LLMInferenceServiceConfig", LANGUAGE_MODELS),
            Map.entry("LocalModelCache", CACHE),
            Map.entry("LocalModelNamespaceCache", CACHE),
            Map.entry("LocalModelNodeGroup", CACHE),
            Map.entry("LocalModelNode", CACHE),
            Map.entry("Predictor", "write an InferenceService, which takes the same model"));

    private Kinds() {}

    /**
     * The kind that a resource names.
     *
     * @throws ServingException INVALID_ARGUMENT with what to do instead when there is no such kind here
     */
    public static Kind of(ObjectNode resource) {
        String apiVersion = resource.path("apiVersion").asText("");
        String name = resource.path("kind").asText("");
        if (apiVersion.isEmpty() || name.isEmpty()) {
            throw ServingException.invalidArgument(
                    "no resource: " + (name.isEmpty() ? "kind" : "apiVersion") + " is missing",
                    "a resource begins with apiVersion and kind, such as serving.kserve.io/v1beta1 and InferenceService");
        }
        Kind kind = byKind(apiVersion, name);
        if (kind != null) {
            return kind;
        }
        String shown = Schema.clip(apiVersion) + " " + Schema.clip(name);
        for (Kind one : ALL) {
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
            String instead = ELSEWHERE.get(name);
            List<String> names = ALL.stream()
                    .filter(one -> one.group().equals(SERVING))
                    .map(Kind::kind)
                    .toList();
            throw ServingException.invalidArgument(
                    "there is no " + shown + " here",
                    instead != null
                            ? instead
                            : "known are " + String.join(", ", names) + Schema.didYouMean(name, names));
        }
        List<String> names = ALL.stream().map(Kind::kind).toList();
        throw ServingException.invalidArgument(
                "there is no " + shown + " here",
                "this server keeps " + String.join(", ", names) + "; the rest is for a cluster"
                        + Schema.didYouMean(name, names));
    }

    /** All kinds. */
    public static List<Kind> all() {
        return ALL;
    }

    /** The kind with this plural in the group, or null. */
    public static @Nullable Kind byPlural(String group, String plural) {
        for (Kind kind : ALL) {
            if (kind.group().equals(group) && kind.plural().equals(plural)) {
                return kind;
            }
        }
        return null;
    }

    /** The kind that a resource names, or null. */
    public static @Nullable Kind byKind(String apiVersion, String kind) {
        for (Kind one : ALL) {
            if (one.apiVersion().equals(apiVersion) && one.kind().equals(kind)) {
                return one;
            }
        }
        return null;
    }

    private static Kind runtime(String kind, boolean namespaced) {
        String lower = kind.toLowerCase(java.util.Locale.ROOT);
        return new Kind(
                SERVING,
                "v1alpha1",
                kind,
                lower + "s",
                lower,
                List.of(),
                namespaced,
                List.of(
                        new Column("Disabled", "boolean", "whether it is never chosen", 0, ".spec.disabled"),
                        new Column(
                                "ModelType",
                                "string",
                                "the formats that it runs",
                                0,
                                ".spec.supportedModelFormats[*].name"),
                        new Column("Containers", "string", "its containers", 0, ".spec.containers[*].name"),
                        age()));
    }

    private static Kind core(
            String kind, String plural, List<String> shortNames, boolean namespaced, List<Column> columns) {
        return new Kind(
                "", "v1", kind, plural, kind.toLowerCase(java.util.Locale.ROOT), shortNames, namespaced, columns);
    }

    private static Column age() {
        return new Column("Age", "date", "since when it is there", 0, ".metadata.creationTimestamp");
    }
}
