// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.knative;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.core.component.PlanningContext;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import io.nereid.control.kubernetes.cluster.Owner;
import io.nereid.control.kubernetes.cluster.Trees;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Makes the VirtualService by which Istio's gateways bring the requests of a service's hosts to Knative's gateway with the
 * host of the component that answers them, as KServe's controller does. Confined to one planning.
 *
 * <p>Fields: {@code networking.istio.io/v1beta1}.
 *
 * @param host the public host of the service
 * @param others further public hosts
 * @param internal whether the service has no public host
 */
record VirtualServiceBuilder(
        PlanningContext context, ClusterSettings settings, String host, List<String> others, boolean internal) {
    private static final String MESH = "mesh";
    private static final String EXPLAIN = "/v1/models/[\\w-]+:explain";
    private static final String PORT = "(?::\\d{1,5})?";

    /**
     * The VirtualService.
     *
     * @param entry the name of the component that answers requests
     * @param explainer the name of the one that explains; null for none
     * @param path the path of the service at the domain of all services, without a slash at its end; null for none
     */
    ObjectNode of(String entry, @Nullable String explainer, @Nullable String path) {
        ObjectNode object = Owner.of(context.service)
                .object(
                        "networking.istio.io/v1beta1",
                        "VirtualService",
                        context.name(),
                        context.service.metadata().labels(),
                        context.annotations(Map.of(), Map.of()));
        ObjectNode spec = object.putObject("spec");
        Set<String> hosts = new LinkedHashSet<>(List.of(inside(context.name())));
        List<String> gateways = new ArrayList<>(List.of(gateway("localGateway"), MESH));
        if (!internal) {
            hosts.add(host);
            gateways.add(gateway("ingressGateway"));
        }
        if (explainer != null) {
            hosts(rule(spec, explainer), "^" + EXPLAIN + "$");
        }
        hosts(rule(spec, entry), null);
        if (path != null) {
            String domain = settings.config().ingress().ingressDomain();
            hosts.add(domain);
            if (explainer != null) {
                String expression = path + "(" + EXPLAIN + ")$";
                ObjectNode rule = rule(spec, explainer);
                match(rule, domain, List.of(gateway("ingressGateway")))
                        .putObject("uri")
                        .put("regex", expression);
                rule.putObject("rewrite")
                        .putObject("uriRegexRewrite")
                        .put("match", expression)
                        .put("rewrite", "\\1");
            }
            ObjectNode rule = rule(spec, entry);
            match(rule, domain, List.of(gateway("ingressGateway")))
                    .putObject("uri")
                    .put("prefix", path + "/");
            match(rule, domain, List.of(gateway("ingressGateway")))
                    .putObject("uri")
                    .put("exact", path);
            rule.putObject("rewrite").put("uri", "/");
        }
        if (!internal) {
            hosts.addAll(others);
        }
        Trees.texts(spec, "hosts", hosts);
        Trees.texts(spec, "gateways", gateways);
        return object;
    }

    private String gateway(String setting) {
        return settings.section("ingress").path(setting).asText();
    }

    /** The host of a Service inside the cluster. */
    private String inside(String name) {
        return name + "." + context.namespace() + ".svc.cluster.local";
    }

    /** A rule that leads to a component by Knative's gateway. */
    private ObjectNode rule(ObjectNode spec, String component) {
        ObjectNode rule = Trees.list(spec, "http").addObject();
        ObjectNode route = Trees.list(rule, "route").addObject();
        route.putObject("destination")
                .put("host", knativeGateway())
                .putObject("port")
                .put("number", 80);
        route.put("weight", 100);
        rule.putObject("headers")
                .putObject("request")
                .putObject("set")
                .put("Host", inside(component))
                .put("KServe-Isvc-Name", context.name())
                .put("KServe-Isvc-Namespace", context.namespace());
        return rule;
    }

    private String knativeGateway() {
        String own =
                settings.section("ingress").path("knativeLocalGatewayService").asText("");
        return own.isEmpty()
                ? settings.section("ingress").path("localGatewayService").asText()
                : own;
    }

    /** Lets a rule match the hosts of the service, and this path where there is one. */
    private void hosts(ObjectNode rule, @Nullable String expression) {
        List<ObjectNode> all = new ArrayList<>();
        all.add(match(rule, inside(context.name()), List.of(gateway("localGateway"), MESH)));
        if (!internal) {
            Set<String> outside = new LinkedHashSet<>(List.of(host));
            outside.addAll(others);
            for (String one : outside) {
                all.add(match(rule, one, List.of(gateway("ingressGateway"))));
            }
        }
        if (expression != null) {
            all.forEach(match -> match.putObject("uri").put("regex", expression));
        }
    }

    private static ObjectNode match(ObjectNode rule, String host, List<String> gateways) {
        ObjectNode match = Trees.list(rule, "match").addObject();
        match.putObject("authority").put("regex", "^" + host.replace(".", "\\.") + PORT + "$");
        Trees.texts(match, "gateways", gateways);
        return match;
    }
}
