// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.standard;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.core.component.PlanningContext;
import io.nereid.control.kubernetes.cluster.Trees;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The routes to a service: an Ingress, or HTTPRoutes of the Gateway API. Confined to one planning.
 *
 * @param predictor the predictor's name
 * @param transformer the transformer's name; null for none
 * @param explainer the explainer's name; null for none
 * @param canaries percentages by the names of canaries that are ready
 * @param services the Services of the components by their names
 */
record RouteObjects(
        Owner owner,
        Hosts hosts,
        PlanningContext context,
        String predictor,
        @Nullable String transformer,
        @Nullable String explainer,
        Map<String, Integer> canaries,
        Map<String, ObjectNode> services) {
    private static final String EVERYTHING = "^/.*$";
    private static final String EXPLAIN = "/v1/models/[\\w-]+:explain";

    /** The Ingress: a rule for the service's host, and one for each component's. */
    ObjectNode ingress() {
        ObjectNode ingress = owner.object(
                "networking.k8s.io/v1",
                "Ingress",
                owner.name(),
                Map.of(),
                context.service.metadata().annotations());
        ObjectNode spec = ingress.putObject("spec");
        String ingressClass = hosts.settings().ingressClass();
        if (ingressClass != null) {
            spec.put("ingressClassName", ingressClass);
        }
        rule(spec, owner.name(), transformer == null ? predictor : transformer);
        for (String component : components()) {
            rule(spec, component, component);
        }
        return ingress;
    }

    private void rule(ObjectNode spec, String name, String backend) {
        ObjectNode rule = Trees.list(spec, "rules").addObject();
        rule.put("host", hosts.host(name));
        ObjectNode path = rule.putObject("http").putArray("paths").addObject();
        path.put("path", "/").put("pathType", "Prefix");
        path.putObject("backend")
                .putObject("service")
                .put("name", backend)
                .putObject("port")
                .put("number", 80);
    }

    private List<String> components() {
        List<String> all = new ArrayList<>();
        if (explainer != null) {
            all.add(explainer);
        }
        if (transformer != null) {
            all.add(transformer);
        }
        all.add(predictor);
        return all;
    }

    /** The route of one component by its own host. */
    ObjectNode component(String name, @Nullable Long timeout) {
        ObjectNode route = route(name);
        ObjectNode spec = (ObjectNode) route.get("spec");
        spec.putArray("hostnames").add(hosts.host(name));
        everything(spec, name, timeout);
        return route;
    }

    /** The route of the service by its own hosts: explanations to the explainer, everything else to the entry point. */
    ObjectNode service(@Nullable Long explainerTimeout, @Nullable Long timeout) {
        ObjectNode route = route(owner.name());
        ObjectNode spec = (ObjectNode) route.get("spec");
        Trees.texts(spec, "hostnames", hosts.all());
        String entry = transformer == null ? predictor : transformer;
        if (explainer != null) {
            path(rule(spec, explainer, 80, explainerTimeout), "^" + EXPLAIN + "$");
        }
        everything(spec, entry, timeout);
        String template = hosts.ingress().pathTemplate();
        if (template != null) {
            String path = context.templates(Map.of()).fill(template, "ingress.pathTemplate");
            path = path.endsWith("/") ? path.substring(0, path.length() - 1) : path;
            Trees.list(spec, "hostnames").add(hosts.ingress().ingressDomain());
            if (explainer != null) {
                path(rule(spec, explainer, 80, explainerTimeout), path + "(" + EXPLAIN + ")$");
            }
            path(rule(spec, entry, 80, timeout), path + "/");
        }
        return route;
    }

    private ObjectNode route(String name) {
        ObjectNode route = owner.object("gateway.networking.k8s.io/v1", "HTTPRoute", name, labels(), annotations());
        ObjectNode spec = route.putObject("spec");
        spec.putArray("parentRefs")
                .addObject()
                .put("group", "gateway.networking.k8s.io")
                .put("kind", "Gateway")
                .put("namespace", hosts.settings().gatewayNamespace())
                .put("name", hosts.settings().gatewayName());
        return route;
    }

    private Map<String, String> labels() {
        Map<String, String> labels =
                new LinkedHashMap<>(context.service.metadata().labels());
        labels.keySet().removeAll(context.config.inferenceService().labelDisallowedList());
        return labels;
    }

    private Map<String, String> annotations() {
        return context.annotations(Map.of(), Map.of());
    }

    /** Rules for everything; for a backend that has both kinds of ports, gRPC by its paths and content type. */
    private void everything(ObjectNode spec, String name, @Nullable Long timeout) {
        int rest = 0;
        int grpc = 0;
        ObjectNode service = services.get(name);
        for (JsonNode port :
                service == null ? Trees.object() : service.path("spec").path("ports")) {
            String portName = port.path("name").asText("").toLowerCase(java.util.Locale.ROOT);
            boolean isGrpc = port.path("appProtocol").asText().equals("kubernetes.io/h2c")
                    || portName.contains("grpc")
                    || portName.contains("h2c");
            if (isGrpc) {
                grpc = grpc == 0 ? port.path("port").asInt() : grpc;
            } else {
                rest = rest == 0 ? port.path("port").asInt() : rest;
            }
        }
        if (rest != 0 && grpc != 0) {
            ObjectNode match = path(rule(spec, name, grpc, timeout), "^/inference\\.GRPCInferenceService/.*$");
            match.putArray("headers")
                    .addObject()
                    .put("type", "RegularExpression")
                    .put("name", "content-type")
                    .put("value", "^application/grpc.*");
        }
        path(rule(spec, name, rest != 0 && grpc != 0 ? rest : 80, timeout), EVERYTHING);
    }

    private ObjectNode rule(ObjectNode spec, String backend, int port, @Nullable Long timeout) {
        ObjectNode rule = Trees.list(spec, "rules").addObject();
        ObjectNode filter = rule.putArray("filters").addObject();
        filter.put("type", "RequestHeaderModifier");
        ObjectNode modifier = filter.putObject("requestHeaderModifier");
        Trees.list(modifier, "set").addObject().put("name", "KServe-Isvc-Name").put("value", owner.name());
        Trees.list(modifier, "set")
                .addObject()
                .put("name", "KServe-Isvc-Namespace")
                .put("value", owner.namespace());
        backends(rule, backend, port);
        if (!hosts.ingress().disableHttpRouteTimeout()) {
            rule.putObject("timeouts").put("request", (timeout == null ? 60 : timeout) + "s");
        }
        return rule;
    }

    /** The backend of a rule; the predictor shares its requests with the canaries that are ready. */
    private void backends(ObjectNode rule, String backend, int port) {
        boolean shared = backend.equals(predictor) && !canaries.isEmpty();
        int rest = 100;
        if (shared) {
            for (int percent : canaries.values()) {
                rest -= percent;
            }
        }
        ObjectNode stable = backend(rule, backend, port);
        if (shared) {
            stable.put("weight", Math.max(0, rest));
            canaries.forEach((name, percent) -> backend(rule, name, port).put("weight", percent));
        }
    }

    private ObjectNode backend(ObjectNode rule, String name, int port) {
        return Trees.list(rule, "backendRefs")
                .addObject()
                .put("kind", "Service")
                .put("name", name)
                .put("namespace", owner.namespace())
                .put("port", port);
    }

    private static ObjectNode path(ObjectNode rule, String expression) {
        ObjectNode match = Trees.list(rule, "matches").addObject();
        match.putObject("path").put("type", "RegularExpression").put("value", expression);
        return match;
    }
}
