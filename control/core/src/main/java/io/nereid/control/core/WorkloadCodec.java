// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import java.time.Duration;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Converts workloads to and from the JSON trees that revisions store. Stateless. */
public final class WorkloadCodec {
    private static final ObjectMapper JSON =
            new ObjectMapper().disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);

    private WorkloadCodec() {}

    public static ObjectNode write(Workload workload) {
        ObjectNode tree = JSON.createObjectNode();
        tree.put("namespace", workload.namespace());
        tree.put("service", workload.service());
        tree.put("component", workload.component().name());
        tree.put("revision", workload.revision());
        tree.put("modelName", workload.modelName());
        tree.set("scaling", JSON.valueToTree(workload.scaling()));
        tree.put("containerConcurrency", workload.containerConcurrency());
        tree.put("timeoutMillis", workload.timeout().toMillis());
        if (workload.logger() != null) {
            tree.set("logger", JSON.valueToTree(workload.logger()));
        }
        if (workload.batcher() != null) {
            tree.putObject("batcher")
                    .put("maxBatchSize", workload.batcher().maxBatchSize())
                    .put("maxLatencyMillis", workload.batcher().maxLatency().toMillis());
        }
        tree.set("labels", JSON.valueToTree(workload.labels()));
        tree.set("annotations", JSON.valueToTree(workload.annotations()));
        tree.set(kind(workload.form()), JSON.valueToTree(workload.form()));
        return withoutNulls(tree);
    }

    public static Workload read(JsonNode tree) {
        JsonNode batcher = tree.get("batcher");
        JsonNode logger = tree.get("logger");
        return new Workload(
                tree.path("namespace").asText(),
                tree.path("service").asText(),
                Workload.Component.valueOf(tree.path("component").asText()),
                tree.path("revision").asText(),
                tree.path("modelName").asText(),
                form(tree),
                value(tree.path("scaling"), Workload.Scaling.class),
                tree.path("containerConcurrency").asInt(),
                Duration.ofMillis(tree.path("timeoutMillis").asLong()),
                logger == null ? null : value(logger, Workload.Logger.class),
                batcher == null
                        ? null
                        : new Workload.Batcher(
                                batcher.path("maxBatchSize").asInt(),
                                Duration.ofMillis(
                                        batcher.path("maxLatencyMillis").asLong())),
                map(tree.path("labels")),
                map(tree.path("annotations")));
    }

    /** A copy of the workload for another revision. */
    public static Workload named(Workload workload, String revision) {
        return with(workload, revision, workload.scaling());
    }

    /** A copy of the workload with another scaling. */
    public static Workload scaled(Workload workload, Workload.Scaling scaling) {
        return with(workload, workload.revision(), scaling);
    }

    private static Workload with(Workload workload, String revision, Workload.Scaling scaling) {
        return new Workload(
                workload.namespace(),
                workload.service(),
                workload.component(),
                revision,
                workload.modelName(),
                workload.form(),
                scaling,
                workload.containerConcurrency(),
                workload.timeout(),
                workload.logger(),
                workload.batcher(),
                workload.labels(),
                workload.annotations());
    }

    /** The field of a tree with a workload's form. */
    public static String kind(Workload.Form form) {
        if (form instanceof Workload.Model) {
            return "model";
        }
        if (form instanceof Workload.Process) {
            return "process";
        }
        if (form instanceof Workload.Pod) {
            return "pod";
        }
        return form instanceof Workload.Explainer ? "explainer" : "transformer";
    }

    private static Workload.Form form(JsonNode tree) {
        if (tree.has("model")) {
            return value(tree.path("model"), Workload.Model.class);
        }
        if (tree.has("process")) {
            return value(tree.path("process"), Workload.Process.class);
        }
        if (tree.has("pod")) {
            return value(tree.path("pod"), Workload.Pod.class);
        }
        return tree.has("explainer")
                ? value(tree.path("explainer"), Workload.Explainer.class)
                : value(tree.path("transformer"), Workload.Transformer.class);
    }

    private static <T> T value(JsonNode tree, Class<T> type) {
        try {
            return JSON.treeToValue(tree, type);
        } catch (JsonProcessingException e) {
            throw ServingException.internal("a revision's " + type.getSimpleName() + " cannot be read", e);
        }
    }

    private static Map<String, String> map(JsonNode tree) {
        Map<String, String> all = new LinkedHashMap<>();
        tree.properties()
                .forEach(entry -> all.put(entry.getKey(), entry.getValue().asText()));
        return Collections.unmodifiableMap(all);
    }

    /** Removes null values, so that the record components are null again when the tree is read. */
    private static ObjectNode withoutNulls(ObjectNode tree) {
        tree.properties().removeIf(entry -> entry.getValue().isNull());
        tree.forEach(WorkloadCodec::clean);
        return tree;
    }

    private static void clean(@Nullable JsonNode tree) {
        if (tree instanceof ObjectNode object) {
            withoutNulls(object);
        } else if (tree instanceof ArrayNode array) {
            array.forEach(WorkloadCodec::clean);
        }
    }
}
