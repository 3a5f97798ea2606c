// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.plan;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.ClusterStorageContainer;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.control.core.ObservedState;
import io.nereid.control.core.Plan;
import io.nereid.control.core.Revision;
import io.nereid.control.core.Route;
import io.nereid.control.core.Workload;
import io.nereid.control.core.WorkloadCodec;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.core.runtime.RuntimeCatalog;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** Runs a case file: a sequence of specifications and of states of the workloads, planned one after the other. */
public final class PlanCase {
    public static final Instant START = Instant.parse("2026-03-01T12:00:00Z");
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    private final ObjectNode resource = NODES.objectNode();
    private final RuntimeCatalog catalog;
    private final Map<String, WorkloadState> states = new TreeMap<>();
    private Plan last = new Plan(List.of(), null, List.of(), NODES.objectNode(), List.of(), null);
    private long generation = 1;

    public PlanCase(JsonNode one) {
        resource.put("apiVersion", "serving.kserve.io/v1beta1").put("kind", "InferenceService");
        ObjectNode meta = resource.putObject("metadata");
        meta.put("name", one.path("name").asText("iris"));
        meta.put("namespace", one.path("namespace").asText("default"));
        meta.set("labels", one.has("labels") ? one.get("labels") : NODES.objectNode());
        meta.set("annotations", one.has("annotations") ? one.get("annotations") : NODES.objectNode());
        resource.set("spec", one.path("spec"));
        List<ServingRuntime> own = new ArrayList<>();
        List<ServingRuntime> cluster = new ArrayList<>();
        for (JsonNode runtime : one.path("runtimes")) {
            ServingRuntime read = ServingRuntime.read((ObjectNode) runtime);
            (read.cluster() ? cluster : own).add(read);
        }
        List<ClusterStorageContainer> containers = new ArrayList<>();
        one.path("storageContainers").forEach(tree -> containers.add(ClusterStorageContainer.read((ObjectNode) tree)));
        InferenceServiceConfig config = one.has("config")
                ? InferenceServiceConfig.read((ObjectNode) one.get("config"))
                : InferenceServiceConfig.defaults();
        catalog = RuntimeCatalog.of(
                own, cluster, containers, config, new RuntimeCatalog.Gateway("localhost:8080", "localhost:8081"));
    }

    public static List<ObjectNode> read(String file) {
        return ManifestReader.parse(text(file), file);
    }

    public static String text(String file) {
        try (InputStream stream = PlanCase.class.getResourceAsStream("/cases/" + file)) {
            return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Plans the changed service, applies the state changes of the step, and plans again. */
    public Plan step(JsonNode step) {
        if (step.has("set")) {
            patch((ObjectNode) resource.get("spec"), step.get("set"));
            generation++;
        }
        for (String part : List.of("annotations", "labels")) {
            if (step.has(part)) {
                patch((ObjectNode) resource.get("metadata").get(part), step.get(part));
            }
        }
        ((ObjectNode) resource.get("metadata")).put("generation", generation);
        Instant now = START.plusSeconds(step.path("at").asLong());
        last = plan(now);
        step.path("states").properties().forEach(entry -> states.put(entry.getKey(), state(entry.getValue())));
        List<Plan.Event> events = new ArrayList<>(last.events());
        last = plan(now);
        events.addAll(last.events());
        return new Plan(last.workloads(), last.route(), last.revisions(), last.status(), events, last.requeueAfter());
    }

    /** The plan of the current state, which changes nothing. */
    public Plan plan(Instant now) {
        return Planner.plan(InferenceService.read(resource.deepCopy()), catalog, observed(), now);
    }

    ObservedState observed() {
        Map<String, WorkloadState> planned = new LinkedHashMap<>();
        for (Workload workload : last.workloads()) {
            if (states.containsKey(workload.revision())) {
                planned.put(workload.revision(), states.get(workload.revision()));
            }
        }
        return new ObservedState(planned, last.revisions(), last.status());
    }

    private static WorkloadState state(JsonNode given) {
        ObservedState.Phase phase = ObservedState.Phase.valueOf(
                given.isTextual() ? given.asText() : given.path("phase").asText());
        int replicas = given.path("replicas").asInt(phase == ObservedState.Phase.READY ? 1 : 0);
        ObservedState.Failure failure = phase == ObservedState.Phase.FAILED
                ? new ObservedState.Failure(
                        given.path("reason").asText("ModelLoadFailed"),
                        given.path("message").asText("no such file"),
                        START,
                        given.has("exitCode") ? (Integer) given.get("exitCode").asInt() : null)
                : null;
        ObservedState.Traffic traffic = new ObservedState.Traffic(
                given.path("requests").asLong(),
                given.path("errors").asLong(),
                given.path("p99").asDouble());
        return new WorkloadState(phase, replicas, given.path("desired").asInt(1), failure, traffic);
    }

    private static void patch(ObjectNode into, JsonNode changes) {
        changes.properties().forEach(entry -> {
            if (entry.getValue().isNull()) {
                into.remove(entry.getKey());
            } else if (entry.getValue() instanceof ObjectNode object
                    && into.get(entry.getKey()) instanceof ObjectNode there) {
                patch(there, object);
            } else {
                into.set(entry.getKey(), entry.getValue().deepCopy());
            }
        });
    }

    /** A plan as a tree with the names of the case files. */
    public static ObjectNode tree(Plan plan) {
        ObjectNode tree = NODES.objectNode();
        tree.put("running", plan.workloads().stream().map(Workload::revision).collect(Collectors.joining(" ")));
        tree.put("kept", plan.revisions().stream().map(Revision::name).collect(Collectors.joining(" ")));
        if (plan.requeueAfter() != null) {
            tree.put("requeue", plan.requeueAfter().toMillis());
        }
        ObjectNode workloads = tree.putObject("workloads");
        plan.workloads().forEach(one -> workloads.set(one.revision(), WorkloadCodec.write(one)));
        Route route = plan.route();
        if (route != null) {
            ObjectNode routed = tree.putObject("route");
            routed.put("kind", route.kind());
            route.components().forEach((component, backend) -> {
                routed.put(component.text(), targets(backend.targets()));
                if (!backend.mirrors().isEmpty()) {
                    routed.put(component.text() + "Mirrors", targets(backend.mirrors()));
                }
                if (backend.stickyHeader() != null) {
                    routed.put(component.text() + "Sticky", backend.stickyHeader());
                }
            });
            var rules = routed.putArray("rules");
            route.rules()
                    .forEach(rule -> rules.add(rule.host()
                            + rule.pathPrefix()
                            + (rule.component() == null
                                    ? ""
                                    : " " + rule.component().text())
                            + (rule.tag() == null ? "" : " #" + rule.tag())));
            if (!route.graph().isEmpty()) {
                routed.put("graph", route.graph());
            }
        }
        tree.set("status", plan.status());
        ObjectNode conditions = tree.putObject("conditions");
        for (JsonNode one : plan.status().path("conditions")) {
            conditions.put(
                    one.path("type").asText(),
                    one.path("status").asText()
                            + (one.has("reason") ? " " + one.path("reason").asText() : ""));
        }
        var events = tree.putArray("events");
        plan.events().forEach(one -> events.add(one.type() + " " + one.reason() + " " + one.message()));
        return tree;
    }

    private static String targets(List<Route.Target> targets) {
        return targets.stream()
                .map(one -> one.revision() + "=" + one.percent() + (one.tag() == null ? "" : "#" + one.tag()))
                .collect(Collectors.joining(" "));
    }
}
