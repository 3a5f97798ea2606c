// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.config.InferenceServiceConfig;
import org.jspecify.annotations.Nullable;

/**
 * The settings of {@code inferenceservice-config} that only a cluster has, with KServe's defaults for what they leave
 * out. Immutable.
 */
public final class ClusterSettings {
    private static final ObjectNode DEFAULTS = KserveCatalog.settings();

    private final ObjectNode tree;
    private final InferenceServiceConfig config;

    private ClusterSettings(ObjectNode tree, InferenceServiceConfig config) {
        this.tree = tree;
        this.config = config;
    }

    /** The settings of a namespace. */
    public static ClusterSettings of(InferenceServiceConfig config) {
        ObjectNode all = DEFAULTS.deepCopy();
        config.tree().properties().forEach(section -> {
            if (section.getValue() instanceof ObjectNode own) {
                Trees.object(all, section.getKey()).setAll(own.deepCopy());
            }
        });
        return new ClusterSettings(all, config);
    }

    /** The typed settings that one machine has as well. */
    public InferenceServiceConfig config() {
        return config;
    }

    /** A section as a tree; empty when it is missing. */
    public JsonNode section(String name) {
        return tree.path(name);
    }

    /** Whether routes are those of the Gateway API, not Ingresses. */
    public boolean gatewayApi() {
        return ingress().path("enableGatewayApi").asBoolean();
    }

    /** The namespace of the gateway that routes name as their parent. */
    public String gatewayNamespace() {
        String gateway = gateway();
        int slash = gateway.indexOf('/');
        return slash < 0 ? "kserve" : gateway.substring(0, slash);
    }

    /** The name of the gateway that routes name as their parent. */
    public String gatewayName() {
        String gateway = gateway();
        return gateway.substring(gateway.indexOf('/') + 1);
    }

    /** The class of Ingresses; null for the cluster's default. */
    public @Nullable String ingressClass() {
        String name = ingress().path("ingressClassName").asText("");
        return name.isEmpty() ? null : name;
    }

    /** Whether Services are headless. */
    public boolean headless() {
        return section("service").path("serviceClusterIPNone").asBoolean();
    }

    /** How models in images are mounted: {@code modelcar}, {@code native}; empty for not at all. */
    public String imageMode() {
        JsonNode initializer = section("storageInitializer");
        String mode = initializer.path("ociModelMode").asText("");
        if (!mode.isEmpty()) {
            return mode;
        }
        return initializer.path("enableModelcar").asBoolean()
                        || initializer.path("enableOciModelSupport").asBoolean()
                ? "modelcar"
                : "";
    }

    /** The requests and limits of a section with {@code cpuLimit} and the like. */
    public ObjectNode resources(String section) {
        JsonNode from = section(section);
        ObjectNode resources = Trees.object();
        for (String part : new String[] {"Limit", "Request"}) {
            ObjectNode to = resources.putObject(part.equals("Limit") ? "limits" : "requests");
            for (String name : new String[] {"cpu", "memory"}) {
                String value = from.path(name + part).asText("");
                if (!value.isEmpty()) {
                    to.put(name, value);
                }
            }
        }
        return resources;
    }

    private JsonNode ingress() {
        return section("ingress");
    }

    private String gateway() {
        return ingress().path("kserveIngressGateway").asText();
    }
}
