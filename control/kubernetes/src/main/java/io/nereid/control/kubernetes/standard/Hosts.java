// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.standard;

import io.nereid.control.api.InferenceService;
import io.nereid.control.api.ObjectMeta;
import io.nereid.control.api.config.InferenceServiceConfig.Ingress;
import io.nereid.control.core.component.TemplateRenderer;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;

/** The host names under which a service and its components are reached. Immutable. */
record Hosts(InferenceService service, ClusterSettings settings) {
    private static final String LOCAL_DOMAIN = "svc.cluster.local";

    /**
     * The public host of the service, or of one of its components, by the template of the settings.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT when the template cannot be filled in
     */
    String host(String name) {
        ObjectMeta meta = service.metadata();
        Ingress ingress = ingress();
        return new TemplateRenderer(
                        Map.of("Name", name, "Namespace", meta.namespace(), "IngressDomain", ingress.ingressDomain()),
                        Map.of("Labels", meta.labels(), "Annotations", meta.annotations()))
                .fill(ingress.domainTemplate(), "ingress.domainTemplate");
    }

    /** The public hosts of the service: the first, and those of further domains. */
    List<String> all() {
        String first = host(service.metadata().name());
        LinkedHashSet<String> hosts = new LinkedHashSet<>(List.of(first));
        String domain = ingress().ingressDomain();
        if (first.endsWith(domain) && first.length() > domain.length()) {
            String prefix = first.substring(0, first.length() - domain.length());
            for (String other : ingress().additionalIngressDomains()) {
                if (isDomain(prefix + other)) {
                    hosts.add(prefix + other);
                }
            }
        }
        return new ArrayList<>(hosts);
    }

    private static boolean isDomain(String host) {
        return host.length() <= 253 && host.matches("[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*");
    }

    /** Whether nothing outside the cluster reaches the service. */
    boolean local() {
        return "cluster-local".equals(service.metadata().label("networking.kserve.io/visibility"))
                || ingress().ingressDomain().equals(LOCAL_DOMAIN);
    }

    /** The address inside the cluster. */
    String address(String entryPoint) {
        return "http://" + entryPoint + "." + service.metadata().namespace() + "." + LOCAL_DOMAIN
                + (settings.headless() ? ":8080" : "");
    }

    Ingress ingress() {
        return settings.config().ingress();
    }
}
