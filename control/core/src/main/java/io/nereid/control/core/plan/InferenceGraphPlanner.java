// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.plan;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.CommandLineArguments;
import io.nereid.control.api.Container;
import io.nereid.control.api.InferenceGraph;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.InferenceService.ModelSpec;
import io.nereid.control.api.InferenceService.TransformerSpec;
import io.nereid.control.api.PodSpec;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.core.ObservedState;
import io.nereid.control.core.Plan;
import io.nereid.control.core.Plan.Event;
import io.nereid.control.core.Route;
import io.nereid.control.core.component.WorkloadForms;
import io.nereid.control.core.local.ProcessForms;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.core.runtime.RuntimeSelection;
import io.nereid.control.core.status.Conditions;
import io.nereid.control.core.status.IngressRules;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Plans one InferenceGraph. Confined to one call of the planner. */
final class InferenceGraphPlanner {
    private static final Duration AGAIN = Duration.ofSeconds(2);

    private static final Set<String> KNOWN = Set.of("nodes", "timeout", "routerTimeouts");

    private final InferenceGraph graph;
    private final Function<String, @Nullable InferenceService> services;
    private final RuntimeCatalog catalog;
    private final InferenceServiceConfig config;
    private final JsonNode before;
    private final Instant now;
    private final String gatewayProblem;
    private final WorkloadForms.Site site;
    private final Set<String> waiting = new LinkedHashSet<>();

    InferenceGraphPlanner(
            InferenceGraph graph,
            Function<String, @Nullable InferenceService> services,
            RuntimeCatalog catalog,
            ObservedState observed,
            Instant now,
            WorkloadForms.Site site) {
        this.graph = graph;
        this.services = services;
        this.catalog = catalog;
        this.config = catalog.config().forNamespace(graph.metadata().namespace());
        this.before = observed.status();
        this.now = now;
        this.gatewayProblem = observed.gatewayProblem();
        this.site = site;
    }

    Plan plan() {
        Conditions conditions = new Conditions(before, now);
        ObjectNode status = JsonNodeFactory.instance.objectNode();
        status.put("observedGeneration", graph.metadata().generation());
        List<Event> events = new ArrayList<>();
        String name = graph.metadata().name();
        String namespace = graph.metadata().namespace();
        Route route = null;
        if ("true".equals(graph.metadata().annotation("serving.kserve.io/stop"))) {
            conditions.set("Ready", Conditions.FALSE, "Stopped", null);
            conditions.set("Stopped", Conditions.TRUE, null, null);
            status.set("conditions", conditions.tree());
            return new Plan(List.of(), null, List.of(), status, events, null);
        }
        ObjectNode resolved = resolved();
        Set<String> advice = advice();
        try {
            IngressRules rules = new IngressRules(graph.metadata(), config);
            if (waiting.isEmpty()) {
                if (gatewayProblem.isEmpty()) {
                    conditions.set("Ready", Conditions.TRUE, null, null);
                } else {
                    conditions.set(
                            "Ready", Conditions.FALSE, InferenceServicePlanner.GATEWAY_NOT_READY, gatewayProblem);
                }
                route = new Route(namespace, name, "InferenceGraph", rules.graph(), Map.of(), resolved.toString());
                status.put("url", rules.url(name));
            } else {
                conditions.set(
                        "Ready", Conditions.FALSE, "ServiceNotReady", "Waiting for " + String.join("; ", waiting));
            }
        } catch (ServingException e) {
            conditions.set("Ready", Conditions.FALSE, "InvalidTemplate", e.getMessage());
        }
        if (!advice.isEmpty()) {
            conditions.advise("FieldsWithoutEffect", Conditions.TRUE, site.reason(), String.join("; ", advice));
            if (!conditions.message("FieldsWithoutEffect").equals(conditions.messageBefore("FieldsWithoutEffect"))) {
                advice.forEach(one -> events.add(new Event("Warning", "FieldWithoutEffect", one)));
            }
        }
        if (!conditions.statusBefore("Stopped").isEmpty()) {
            conditions.set("Stopped", Conditions.FALSE, null, null);
        }
        boolean was = conditions.statusBefore("Ready").equals(Conditions.TRUE);
        boolean is = conditions.status("Ready").equals(Conditions.TRUE);
        if (is && !was) {
            events.add(new Event("Normal", "InferenceGraphReady", "InferenceGraph [" + name + "] is Ready"));
        } else if (was && !is) {
            events.add(new Event(
                    "Warning",
                    "InferenceGraphNotReady",
                    "InferenceGraph [" + name + "]: " + conditions.message("Ready")));
        }
        status.set("conditions", conditions.tree());
        status.put("deploymentMode", config.deploy().defaultDeploymentMode().text());
        return new Plan(List.of(), route, List.of(), status, List.copyOf(events), waiting.isEmpty() ? null : AGAIN);
    }

    /**
     * The graph's nodes, with a URL for each step that names a service. Adds services that are not ready to {@code
     * waiting}.
     */
    private ObjectNode resolved() {
        ObjectNode spec = graph.tree().path("spec").isObject()
                ? (ObjectNode) graph.tree().path("spec").deepCopy()
                : JsonNodeFactory.instance.objectNode();
        for (JsonNode node : spec.path("nodes")) {
            for (JsonNode step : node.path("steps")) {
                String service = step.path("serviceName").asText();
                if (!service.isEmpty() && step instanceof ObjectNode object) {
                    String url = url(service);
                    if (url != null) {
                        object.put("serviceUrl", url);
                    }
                }
            }
        }
        spec.retain(KNOWN);
        return spec;
    }

    private @Nullable String url(String name) {
        InferenceService service = services.apply(name);
        if (service == null) {
            waiting.add("InferenceService " + name + ", which does not exist");
            return null;
        }
        boolean ready = false;
        for (JsonNode condition : service.status().path("conditions")) {
            ready |= condition.path("type").asText().equals("Ready")
                    && condition.path("status").asText().equals("True");
        }
        String address = service.status().path("address").path("url").asText();
        if (address.isEmpty() || (!ready && before.path("url").asText().isEmpty())) {
            waiting.add("InferenceService " + name + ", which is not ready");
            return null;
        }
        return address + path(service);
    }

    /** The path for predictions: of the model's name, and of the protocol, V1 where V2 is not named. */
    private String path(InferenceService service) {
        TransformerSpec transformer = service.transformer();
        RuntimeSelection selection = RuntimeSelection.of(service, catalog);
        String name = modelName(service, selection);
        String protocol;
        if (transformer != null && !transformer.pod().containers().isEmpty()) {
            protocol = protocol(transformer.pod());
        } else if (selection == null) {
            protocol = protocol(service.predictor().pod());
        } else {
            protocol = selection.protocol();
        }
        return "v2".equals(protocol) || "grpc-v2".equals(protocol)
                ? "/v2/models/" + name + "/infer"
                : "/v1/models/" + name + ":predict";
    }

    private static String protocol(PodSpec pod) {
        return pod.containers().stream()
                .map(one -> one.env("PROTOCOL"))
                .filter(one -> one != null && !one.isEmpty())
                .findFirst()
                .orElse("v1");
    }

    /**
     * The name under which a service has its model: what an argument {@code --model_name} of the transformer or else of
     * the predictor says, or the variable of MLServer in its own runtimes, as in KServe; else the service's name.
     */
    private static String modelName(InferenceService service, @Nullable RuntimeSelection selection) {
        TransformerSpec transformer = service.transformer();
        if (transformer != null && !transformer.pod().containers().isEmpty()) {
            String given = modelName(transformer.pod().containers().get(0));
            if (!given.isEmpty()) {
                return given;
            }
        }
        ModelSpec model = service.predictor().model();
        String given = "";
        if (model != null) {
            given = modelName(model.container());
            ServingRuntime runtime = selection == null ? null : selection.chosen();
            if (given.isEmpty() && runtime != null && runtime.name().contains("mlserver")) {
                given = Objects.requireNonNullElse(model.container().env("MLSERVER_MODEL_NAME"), "");
            }
        } else if (!service.predictor().pod().containers().isEmpty()) {
            given = modelName(service.predictor().pod().containers().get(0));
        }
        return given.isEmpty() ? service.metadata().name() : given;
    }

    private static String modelName(Container container) {
        List<String> all = new ArrayList<>(container.command());
        all.addAll(container.args());
        return CommandLineArguments.normalized(all).getOrDefault("model_name", "");
    }

    private Set<String> advice() {
        Set<String> advice = new LinkedHashSet<>(config.router().warnings());
        graph.tree().path("spec").properties().forEach(entry -> {
            if (!KNOWN.contains(entry.getKey()) && !ProcessForms.isEmpty(entry.getValue())) {
                advice.add("spec." + entry.getKey()
                        + (site == WorkloadForms.Site.ONE_MACHINE
                                ? " has no effect on one machine: graphs run in the server, without a process of their"
                                        + " own"
                                : " has no effect: graphs run in the gateways, without pods of their own"));
            }
        });
        return advice;
    }
}
