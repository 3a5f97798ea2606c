// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.knative;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.config.InferenceServiceConfig.Ingress;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.component.PlanningContext;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.cluster.Owner;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.standard.LivingConditions;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The hosts of a service, which follow from those that Knative gives its components, and the objects that lead to them.
 * Confined to one planning.
 *
 * @param components the predictor first
 */
record KnativeRoutes(
        PlanningContext context,
        ClusterSettings settings,
        ObservedCluster cluster,
        KnativeNetwork network,
        List<PlannedRevisions> components) {
    private static final String LOCAL_DOMAIN = ".svc.cluster.local";

    /** A component that is not ready, so that there is not a route yet; null for none. */
    @Nullable PlannedRevisions missing(LivingConditions conditions) {
        for (PlannedRevisions one : components) {
            if (!conditions.isTrue(one.ready())) {
                return one;
            }
        }
        return null;
    }

    /** The Service with the name of the InferenceService, which leads to the gateway inside the cluster. */
    ObjectNode service() {
        ObjectNode service = Owner.of(context.service).object("v1", "Service", context.name(), Map.of(), Map.of());
        service.putObject("spec")
                .put("type", "ExternalName")
                .put("sessionAffinity", "None")
                .put(
                        "externalName",
                        settings.section("ingress").path("localGatewayService").asText());
        return service;
    }

    /**
     * The VirtualService; the one that is there while a component is not ready, null for none.
     *
     * @param status the status of the service with those of its components
     * @throws ServingException INVALID_ARGUMENT for a path template that cannot be filled in
     */
    @Nullable ObjectNode virtualService(ObjectNode status, boolean ready) {
        String host = host(status);
        if (!ready || host == null) {
            return cluster.object("VirtualService", context.name());
        }
        boolean internal = "cluster-local".equals(context.service.metadata().label(KnativeServiceBuilder.VISIBILITY))
                || host.equals(context.name() + "." + context.namespace() + LOCAL_DOMAIN);
        PlannedRevisions explainer = of(Component.EXPLAINER);
        return new VirtualServiceBuilder(context, settings, host, internal ? List.of() : others(host), internal)
                .of(entry().name(), explainer == null ? null : explainer.name(), path());
    }

    /** The component that answers requests. */
    private PlannedRevisions entry() {
        PlannedRevisions transformer = of(Component.TRANSFORMER);
        return transformer == null ? components.get(0) : transformer;
    }

    private @Nullable PlannedRevisions of(Component component) {
        return components.stream()
                .filter(one -> one.component() == component)
                .findFirst()
                .orElse(null);
    }

    /** The host that Knative gives the component that answers requests; null for none yet. */
    private @Nullable String componentHost(ObjectNode status) {
        String url = status.path("components")
                .path(entry().component().text())
                .path("url")
                .asText("");
        if (url.isEmpty()) {
            return null;
        }
        try {
            return URI.create(url).getAuthority();
        } catch (IllegalArgumentException e) {
            return null;
        }
    }

    /** The host of the service: that of its component without the word for it, by whatever template Knative makes it. */
    private @Nullable String host(ObjectNode status) {
        String host = componentHost(status);
        if (host == null) {
            return null;
        }
        String word = "-" + entry().component().text();
        String name = entry().name();
        if (host.startsWith(name) && name.endsWith(word)) {
            return name.substring(0, name.length() - word.length()) + host.substring(name.length());
        }
        int at = host.indexOf(word);
        return at < 0 ? host : host.substring(0, at) + host.substring(at + word.length());
    }

    /** The service's hosts of further domains. */
    private List<String> others(String host) {
        List<String> further = settings.config().ingress().additionalIngressDomains();
        List<String> all = new ArrayList<>();
        if (further.isEmpty()) {
            return all;
        }
        for (String domain : network.domains().get()) {
            if (host.endsWith(domain) && host.length() > domain.length()) {
                String prefix = host.substring(0, host.length() - domain.length());
                for (String one : further) {
                    if ((prefix + one).matches("[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")) {
                        all.add(prefix + one);
                    }
                }
                break;
            }
        }
        return all;
    }

    /** The path of the service at the domain of all services, without a slash at its end; null for none. */
    private @Nullable String path() {
        String template = settings.config().ingress().pathTemplate();
        if (template == null) {
            return null;
        }
        String path = context.templates(Map.of()).fill(template, "ingress.pathTemplate");
        return path.endsWith("/") ? path.substring(0, path.length() - 1) : path;
    }

    /**
     * The public URL of the service, and with it the scheme in the URL of the component that answers requests; null while
     * Knative has not given it one.
     *
     * @param hosts whether the service has a host of its own, not that of its component
     */
    @Nullable String url(ObjectNode status, boolean hosts) {
        String component = componentHost(status);
        String own = hosts ? host(status) : component;
        if (component == null || own == null) {
            return null;
        }
        Ingress ingress = settings.config().ingress();
        Trees.object(Trees.object(status, "components"), entry().component().text())
                .put("url", ingress.urlScheme() + "://" + component);
        String template = ingress.pathTemplate();
        if (template != null) {
            return ingress.urlScheme() + "://" + ingress.ingressDomain()
                    + context.templates(Map.of()).fill(template, "ingress.pathTemplate");
        }
        return ingress.urlScheme() + "://" + own;
    }

    /** The address inside the cluster. */
    String address(boolean hosts) {
        return "http://" + (hosts ? context.name() : entry().name()) + "." + context.namespace() + LOCAL_DOMAIN;
    }
}
