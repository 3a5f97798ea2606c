// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import io.nereid.base.ServingException;
import io.nereid.control.api.ObjectMeta;
import io.nereid.control.api.ServiceConfig;
import io.nereid.control.core.Route.Backend;
import io.nereid.control.core.Route.Door;
import io.nereid.control.core.Route.Target;
import io.nereid.control.core.Workload.Component;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The hosts and paths of one service or graph. Immutable. */
final class Doors {
    /** Where services are found by path when the configuration has no {@code pathTemplate}. */
    static final String PATH_TEMPLATE = "/serving/{{ .Namespace }}/{{ .Name }}";

    private static final String LOCAL_DOMAIN = "svc.cluster.local";

    private final ObjectMeta meta;
    private final ServiceConfig.Ingress ingress;
    private final boolean local;
    private final boolean byPath;
    private final String path;

    /**
     * Finds the names out.
     *
     * @throws ServingException INVALID_ARGUMENT when a template cannot be filled in
     */
    Doors(ObjectMeta meta, ServiceConfig config) {
        this.meta = meta;
        this.ingress = config.ingress();
        this.local = "cluster-local".equals(meta.label("networking.kserve.io/visibility"))
                || "cluster-local".equals(meta.label("networking.knative.dev/visibility"))
                || ingress.ingressDomain().equals(LOCAL_DOMAIN);
        this.byPath = ingress.pathTemplate() != null;
        String template = ingress.pathTemplate() == null ? PATH_TEMPLATE : ingress.pathTemplate();
        String filled = new Templates(
                        Map.of(
                                "Name", meta.name(),
                                "Namespace", meta.namespace(),
                                "IngressDomain", ingress.ingressDomain()),
                        Map.of("Labels", meta.labels(), "Annotations", meta.annotations()))
                .fill(template, "ingress.pathTemplate");
        filled = filled.startsWith("/") ? filled : "/" + filled;
        this.path = filled.endsWith("/") ? filled.substring(0, filled.length() - 1) : filled;
        host(meta.name(), ingress.ingressDomain());
    }

    /** The path prefix; empty when the service is only for the inside. */
    String path() {
        return local || ingress.disableIngressCreation() ? "" : path;
    }

    /** The host as URLs have it, with the port that the domain has. */
    private String host(String name, String domain) {
        return host(ingress.domainTemplate(), "ingress.domainTemplate", name, domain);
    }

    private String host(String template, String setting, String name, String domain) {
        return new Templates(
                        Map.of("Name", name, "Namespace", meta.namespace(), "IngressDomain", domain),
                        Map.of("Labels", meta.labels(), "Annotations", meta.annotations()))
                .fill(template, setting)
                .toLowerCase(Locale.ROOT);
    }

    private static String withoutPort(String host) {
        int colon = host.indexOf(':');
        return colon < 0 ? host : host.substring(0, colon);
    }

    /** The URL for clients of the service, or of a part of it. */
    String url(String name) {
        if (local) {
            return internal(name);
        }
        if (byPath && name.equals(meta.name())) {
            return ingress.urlScheme() + "://" + ingress.ingressDomain() + path;
        }
        return ingress.urlScheme() + "://" + host(name, ingress.ingressDomain());
    }

    /** The URL for other services. */
    String internal(String name) {
        return "http://" + name + "." + meta.namespace() + "." + LOCAL_DOMAIN;
    }

    private void add(Set<Door> doors, String name, @Nullable Component component, @Nullable String tag) {
        if (!local && !ingress.disableIngressCreation()) {
            List<String> domains = new ArrayList<>();
            domains.add(ingress.ingressDomain());
            domains.addAll(ingress.additionalIngressDomains());
            for (String domain : domains) {
                doors.add(new Door(withoutPort(host(name, domain)), "", component, tag));
            }
            for (String template : ingress.additionalDomainTemplates()) {
                for (String domain : domains) {
                    String host = host(template, "ingress.additionalDomainTemplates", name, domain);
                    doors.add(new Door(withoutPort(host), "", component, tag));
                }
            }
        }
        String inside = (name + "." + meta.namespace()).toLowerCase(Locale.ROOT);
        for (String host : List.of(inside + "." + LOCAL_DOMAIN, inside + ".svc", inside)) {
            doors.add(new Door(host, "", component, tag));
        }
    }

    /**
     * All doors.
     *
     * @param backends of the parts that answer
     * @param front the part that the service's own name leads to; null when the service does not answer as a whole
     */
    List<Door> all(Map<Component, Backend> backends, @Nullable Component front) {
        Set<Door> doors = new LinkedHashSet<>();
        if (front != null) {
            add(doors, meta.name(), null, null);
            if (!path().isEmpty()) {
                doors.add(new Door("", path, null, null));
            }
            for (Target target : backends.getOrDefault(front, new Backend(List.of(), List.of(), null))
                    .targets()) {
                if (target.tag() != null) {
                    add(doors, target.tag() + "-" + meta.name(), null, target.tag());
                }
            }
        }
        backends.forEach((component, backend) -> {
            String name = meta.name() + "-" + Drafts.part(component);
            add(doors, name, component, null);
            for (Target target : backend.targets()) {
                if (target.tag() != null) {
                    add(doors, target.tag() + "-" + name, component, target.tag());
                }
            }
        });
        return List.copyOf(doors);
    }

    /** The doors of a graph. */
    List<Door> graph() {
        Set<Door> doors = new LinkedHashSet<>();
        add(doors, meta.name(), null, null);
        if (!path().isEmpty()) {
            doors.add(new Door("", path, null, null));
        }
        return new ArrayList<>(doors);
    }
}
