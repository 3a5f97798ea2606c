// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.status;

import io.nereid.base.ServingException;
import io.nereid.control.api.ObjectMeta;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.core.Route.Backend;
import io.nereid.control.core.Route.IngressRule;
import io.nereid.control.core.Route.Target;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.component.TemplateRenderer;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The ingress rules of one service or graph: the hosts and paths under which clients reach it, and its URLs. Immutable.
 */
public final class IngressRules {
    /** The path template when the configuration does not have a {@code pathTemplate}. */
    static final String PATH_TEMPLATE = "/serving/{{ .Namespace }}/{{ .Name }}";

    private static final String LOCAL_DOMAIN = "svc.cluster.local";

    private final ObjectMeta meta;
    private final InferenceServiceConfig.Ingress ingress;
    private final boolean local;
    private final boolean byPath;
    private final String path;

    /**
     * Renders the templates of the configuration.
     *
     * @throws ServingException INVALID_ARGUMENT when a template cannot be rendered
     */
    public IngressRules(ObjectMeta meta, InferenceServiceConfig config) {
        this.meta = meta;
        this.ingress = config.ingress();
        this.local = "cluster-local".equals(meta.label("networking.kserve.io/visibility"))
                || "cluster-local".equals(meta.label("networking.knative.dev/visibility"))
                || ingress.ingressDomain().equals(LOCAL_DOMAIN);
        this.byPath = ingress.pathTemplate() != null;
        String template = ingress.pathTemplate() == null ? PATH_TEMPLATE : ingress.pathTemplate();
        String filled = new TemplateRenderer(
                        Map.of(
                                "Name", meta.name(),
                                "Namespace", meta.namespace(),
                                "IngressDomain", ingress.ingressDomain()),
                        Map.of("Labels", meta.labels(), "Annotations", meta.annotations()))
                .fill(template, "ingress.pathTemplate");
        filled = filled.startsWith("/") ? filled : "/" + filled;
        this.path = filled.endsWith("/") ? filled.substring(0, filled.length() - 1) : filled;
        host(meta.name(), ingress.ingressDomain()); // so that an invalid domain template fails here, not later
    }

    /** The path prefix; empty for a cluster-local service and when ingress creation is disabled. */
    String path() {
        return local || ingress.disableIngressCreation() ? "" : path;
    }

    /** The host name for URLs, including the port of the domain. */
    private String host(String name, String domain) {
        return host(ingress.domainTemplate(), "ingress.domainTemplate", name, domain);
    }

    private String host(String template, String setting, String name, String domain) {
        return new TemplateRenderer(
                        Map.of("Name", name, "Namespace", meta.namespace(), "IngressDomain", domain),
                        Map.of("Labels", meta.labels(), "Annotations", meta.annotations()))
                .fill(template, setting)
                .toLowerCase(Locale.ROOT);
    }

    private static String withoutPort(String host) {
        int colon = host.indexOf(':');
        return colon < 0 ? host : host.substring(0, colon);
    }

    /** The external URL of the service or of one of its components; the internal one for a cluster-local service. */
    public String url(String name) {
        if (local) {
            return internal(name);
        }
        if (byPath && name.equals(meta.name())) {
            return ingress.urlScheme() + "://" + ingress.ingressDomain() + path;
        }
        return ingress.urlScheme() + "://" + host(name, ingress.ingressDomain());
    }

    /** The cluster-internal URL, for other services. */
    String internal(String name) {
        return "http://" + name + "." + meta.namespace() + "." + LOCAL_DOMAIN;
    }

    private void add(Set<IngressRule> rules, String name, @Nullable Component component, @Nullable String tag) {
        if (!local && !ingress.disableIngressCreation()) {
            List<String> domains = new ArrayList<>();
            domains.add(ingress.ingressDomain());
            domains.addAll(ingress.additionalIngressDomains());
            for (String domain : domains) {
                rules.add(new IngressRule(withoutPort(host(name, domain)), "", component, tag));
            }
            for (String template : ingress.additionalDomainTemplates()) {
                for (String domain : domains) {
                    String host = host(template, "ingress.additionalDomainTemplates", name, domain);
                    rules.add(new IngressRule(withoutPort(host), "", component, tag));
                }
            }
        }
        String inside = (name + "." + meta.namespace()).toLowerCase(Locale.ROOT);
        for (String host : List.of(inside + "." + LOCAL_DOMAIN, inside + ".svc", inside)) {
            rules.add(new IngressRule(host, "", component, tag));
        }
    }

    /**
     * All ingress rules of a service.
     *
     * @param backends the backends of the components that are ready
     * @param entryPoint the component that receives the requests to the service's own name; null while a component is not
     *     ready
     */
    public List<IngressRule> all(Map<Component, Backend> backends, @Nullable Component entryPoint) {
        Set<IngressRule> rules = new LinkedHashSet<>();
        if (entryPoint != null) {
            add(rules, meta.name(), null, null);
            if (!path().isEmpty()) {
                rules.add(new IngressRule("", path, null, null));
            }
            for (Target target : backends.getOrDefault(entryPoint, new Backend(List.of(), List.of(), null))
                    .targets()) {
                if (target.tag() != null) {
                    add(rules, target.tag() + "-" + meta.name(), null, target.tag());
                }
            }
        }
        backends.forEach((component, backend) -> {
            String name = meta.name() + "-" + component.text();
            add(rules, name, component, null);
            for (Target target : backend.targets()) {
                if (target.tag() != null) {
                    add(rules, target.tag() + "-" + name, component, target.tag());
                }
            }
        });
        return List.copyOf(rules);
    }

    /** The ingress rules of a graph. */
    public List<IngressRule> graph() {
        Set<IngressRule> rules = new LinkedHashSet<>();
        add(rules, meta.name(), null, null);
        if (!path().isEmpty()) {
            rules.add(new IngressRule("", path, null, null));
        }
        return new ArrayList<>(rules);
    }
}
