// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import io.nereid.control.api.Kind.Column;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The kinds of resources there are. Immutable. */
public final class Kinds {
    /** KServe's group. */
    public static final String SERVING = "serving.kserve.io";

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
                    new Column("Ready", "string", "whether it answers", 0, ".status.conditions[?(@.type=='Ready')].status"),
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
                    new Column("Ready", "string", "whether it answers", 0, ".status.conditions[?(@.type=='Ready')].status"),
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
    public static final Kind SECRET = core("Secret", "secrets", List.of(), true, List.of(
            new Column("Type", "string", "what it is for", 0, ".type"), age()));

    /** Settings. */
    public static final Kind CONFIG_MAP = core("ConfigMap", "configmaps", List.of("cm"), true, List.of(age()));

    /** Whose credentials a service uses. */
    public static final Kind SERVICE_ACCOUNT =
            core("ServiceAccount", "serviceaccounts", List.of("sa"), true, List.of(age()));

    /** A space of names. */
    public static final Kind NAMESPACE = core("Namespace", "namespaces", List.of("ns"), false, List.of(
            new Column("Status", "string", "its phase", 0, ".status.phase"), age()));

    /** Something that happened. */
    public static final Kind EVENT = core("Event", "events", List.of("ev"), true, List.of(
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

    private Kinds() {}

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
                                "ModelType", "string", "the formats that it runs", 0, ".spec.supportedModelFormats[*].name"),
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
