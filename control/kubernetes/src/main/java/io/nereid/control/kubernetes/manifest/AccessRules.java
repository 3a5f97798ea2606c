// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.manifest;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.kubernetes.manifest.ManifestOptions.Part;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The rights of operator, gateway and the agents of nodes: for all namespaces as ClusterRoles, or for some as Roles in each of them. Secrets
 * are read by name, never listed, so that no credentials lie in the memory of the operator. Confined to one call.
 */
final class AccessRules {
    static final String CERTIFICATE = "nereid-webhook-certificate";
    static final String LEASE = "nereid-operator";
    private static final String POOL_KEY = "nereid-pools";

    private static final List<String> READ = List.of("get", "list", "watch");
    private static final List<String> OWN = List.of("get", "list", "watch", "create", "update", "patch", "delete");

    private final ManifestOptions options;
    private final List<ObjectNode> objects = new ArrayList<>();

    AccessRules(ManifestOptions options) {
        this.options = options;
    }

    List<ObjectNode> all() {
        account("nereid-operator", services(), cluster());
        role("nereid-operator", options.namespace(), own(), "nereid-operator-own");
        if (options.wholeCluster()) {
            account("nereid-node-agent", List.of(), agent());
            role(
                    "nereid-node-agent",
                    options.namespace(),
                    List.of(named(rule("", READ, "configmaps"), InferenceServiceConfig.CONFIG_MAP)),
                    "nereid-node-agent-own");
            // Bound by an administrator, in the namespaces whose secrets the agents may use.
            object("ClusterRole", options.clusterName() + "-node-agent-credentials", null)
                    .set("rules", list(List.of(rule("", List.of("get"), "secrets", "serviceaccounts"))));
        }
        if (options.has(Part.GATEWAY)) {
            List<ObjectNode> reviews = options.reviewMode().equals("off") ? List.of() : tokens();
            account("nereid-gateway", traffic(), reviews);
            if (!options.wholeCluster() && !reviews.isEmpty()) {
                // Reviews exist for the whole cluster only; they tell nothing about its objects.
                clusterRole("nereid-gateway", reviews);
            }
            role(
                    "nereid-gateway",
                    options.namespace(),
                    List.of(named(rule("", READ, "configmaps"), InferenceServiceConfig.CONFIG_MAP)),
                    "nereid-gateway-own");
        }
        return objects;
    }

    /** The rights in the namespaces whose resources are served, and those on objects of the cluster. */
    private void account(String account, List<ObjectNode> namespaced, List<ObjectNode> cluster) {
        if (options.wholeCluster()) {
            List<ObjectNode> rules = new ArrayList<>(namespaced);
            rules.addAll(cluster);
            clusterRole(account, rules);
        } else {
            options.watchNamespaces().forEach(namespace -> role(account, namespace, namespaced, account));
        }
    }

    private void clusterRole(String account, List<ObjectNode> rules) {
        String name = account.replace("nereid", options.clusterName());
        object("ClusterRole", name, null).set("rules", list(rules));
        bind("ClusterRole", "ClusterRoleBinding", name, null, account);
    }

    private void role(String account, String namespace, List<ObjectNode> rules, String name) {
        String full = namespace.equals(options.namespace()) ? name : name.replace("nereid", options.clusterName());
        object("Role", full, namespace).set("rules", list(rules));
        bind("Role", "RoleBinding", full, namespace, account);
    }

    /** What services and graphs are made of. */
    private static List<ObjectNode> services() {
        String serving = ResourceKinds.SERVING;
        return List.of(
                rule(serving, READ, "inferenceservices", "inferencegraphs", "servingruntimes"),
                // The finalizer, and the runtimes that are built in.
                rule(serving, List.of("update", "patch"), "inferenceservices", "inferencegraphs"),
                rule(serving, List.of("create", "patch"), "servingruntimes"),
                rule(serving, List.of("get", "update", "patch"), "inferenceservices/status", "inferencegraphs/status"),
                // Of language models the status says that they are not carried out.
                rule(serving, READ, "llminferenceservices", "llminferenceserviceconfigs"),
                rule(
                        serving,
                        List.of("get", "update", "patch"),
                        "llminferenceservices/status",
                        "llminferenceserviceconfigs/status"),
                // Models of services with many: those of a service that is gone go, and KServe's finalizer is removed.
                rule(serving, List.of("get", "list", "watch", "update", "delete"), "trainedmodels"),
                rule(serving, List.of("get", "update", "patch"), "trainedmodels/status"),
                // Owner references that block deletion, where the API server asks for the right to set them.
                rule(
                        serving,
                        List.of("update"),
                        "inferenceservices/finalizers",
                        "inferencegraphs/finalizers",
                        "trainedmodels/finalizers"),
                rule("apps", OWN, "deployments"),
                rule("", OWN, "services"),
                rule("autoscaling", OWN, "horizontalpodautoscalers"),
                rule("networking.k8s.io", OWN, "ingresses"),
                rule("gateway.networking.k8s.io", OWN, "httproutes"),
                rule("keda.sh", OWN, "scaledobjects"),
                rule("opentelemetry.io", OWN, "opentelemetrycollectors"),
                rule("serving.knative.dev", OWN, "services"),
                rule("networking.istio.io", OWN, "virtualservices"),
                rule("", READ, "pods", "persistentvolumeclaims", "serviceaccounts"),
                // Those with the pods that have a model of a pool are the operator's own.
                rule("discovery.k8s.io", OWN, "endpointslices"),
                rule("", List.of("get"), "secrets"),
                // Those with the revisions and models of services, and with the authorities of stores.
                rule("", OWN, "configmaps"),
                rule("", List.of("get", "create", "patch"), "events"));
    }

    private List<ObjectNode> cluster() {
        List<ObjectNode> rules = new ArrayList<>();
        String serving = ResourceKinds.SERVING;
        rules.add(rule(serving, READ, "clusterservingruntimes", "clusterstoragecontainers"));
        rules.add(rule(serving, List.of("create", "patch"), "clusterservingruntimes", "clusterstoragecontainers"));
        rules.add(rule("", READ, "namespaces"));
        // Models that nodes keep: the resources, whose finalizer of KServe is removed, what nodes shall keep, and
        // volumes.
        rules.add(rule(serving, READ, "localmodelcaches", "localmodelnamespacecaches", "localmodelnodegroups"));
        rules.add(rule(
                serving, List.of("patch"), "localmodelcaches", "localmodelnamespacecaches", "localmodelnodegroups"));
        rules.add(rule(
                serving,
                List.of("get", "update", "patch"),
                "localmodelcaches/status",
                "localmodelnamespacecaches/status"));
        rules.add(rule(serving, OWN, "localmodelnodes"));
        rules.add(rule("", READ, "nodes"));
        rules.add(rule("", OWN, "persistentvolumes", "persistentvolumeclaims"));
        if (options.has(Part.WEBHOOK)) {
            rules.add(named(
                    rule(
                            "admissionregistration.k8s.io",
                            List.of("get", "patch"),
                            "validatingwebhookconfigurations",
                            "mutatingwebhookconfigurations"),
                    options.clusterName()));
        }
        return rules;
    }

    /** What the operator does in its own namespace. */
    private List<ObjectNode> own() {
        List<ObjectNode> rules = new ArrayList<>();
        rules.add(rule("coordination.k8s.io", List.of("create"), "leases"));
        rules.add(named(rule("coordination.k8s.io", List.of("get", "update", "patch"), "leases"), LEASE));
        rules.add(named(rule("", READ, "configmaps"), InferenceServiceConfig.CONFIG_MAP));
        // The certificate authorities of stores, by the name in the settings.
        rules.add(rule("", List.of("get"), "configmaps"));
        rules.add(rule("", List.of("get", "create", "patch"), "events"));
        // The gateways, whose load is asked for.
        rules.add(rule("discovery.k8s.io", READ, "endpointslices"));
        // Those for all namespaces.
        rules.add(rule(ResourceKinds.SERVING, READ, "llminferenceserviceconfigs"));
        // The agents of nodes.
        rules.add(rule("apps", OWN, "daemonsets"));
        // The key by which models are loaded in pools.
        rules.add(rule("", List.of("create"), "secrets"));
        rules.add(named(rule("", List.of("get"), "secrets"), POOL_KEY));
        if (options.has(Part.WEBHOOK) && options.wholeCluster()) {
            rules.add(named(rule("", List.of("get", "list", "watch", "update", "patch"), "secrets"), CERTIFICATE));
        }
        return rules;
    }

    /** What the agents of nodes read and report. */
    private static List<ObjectNode> agent() {
        return List.of(
                rule(ResourceKinds.SERVING, READ, "localmodelnodes", "localmodelnodegroups"),
                rule(ResourceKinds.SERVING, List.of("get", "update"), "localmodelnodes/status"));
    }

    /** What the gateway reads to route and to count. */
    private static List<ObjectNode> traffic() {
        return List.of(
                rule(ResourceKinds.SERVING, READ, "inferenceservices", "inferencegraphs"),
                rule("discovery.k8s.io", READ, "endpointslices"),
                rule("", READ, "services"));
    }

    /** What the reviews of callers take. */
    private static List<ObjectNode> tokens() {
        return List.of(
                rule("authentication.k8s.io", List.of("create"), "tokenreviews"),
                rule("authorization.k8s.io", List.of("create"), "subjectaccessreviews"));
    }

    private static ObjectNode rule(String group, List<String> verbs, String... resources) {
        ObjectNode rule = JsonNodeFactory.instance.objectNode();
        rule.putArray("apiGroups").add(group);
        List.of(resources).forEach(rule.putArray("resources")::add);
        verbs.forEach(rule.putArray("verbs")::add);
        return rule;
    }

    private static ObjectNode named(ObjectNode rule, String name) {
        rule.putArray("resourceNames").add(name);
        return rule;
    }

    private static ArrayNode list(List<ObjectNode> rules) {
        ArrayNode list = JsonNodeFactory.instance.arrayNode();
        rules.forEach(rule -> list.add(rule.deepCopy()));
        return list;
    }

    private ObjectNode object(String kind, String name, @Nullable String namespace) {
        ObjectNode object = JsonNodeFactory.instance.objectNode();
        object.put("apiVersion", "rbac.authorization.k8s.io/v1").put("kind", kind);
        ObjectNode metadata = object.putObject("metadata").put("name", name);
        if (namespace != null) {
            metadata.put("namespace", namespace);
        }
        metadata.putObject("labels").put("app.kubernetes.io/part-of", "nereid");
        objects.add(object);
        return object;
    }

    private void bind(String roleKind, String kind, String name, @Nullable String namespace, String account) {
        ObjectNode binding = object(kind, name, namespace);
        binding.putObject("roleRef")
                .put("apiGroup", "rbac.authorization.k8s.io")
                .put("kind", roleKind)
                .put("name", name);
        binding.putArray("subjects")
                .addObject()
                .put("kind", "ServiceAccount")
                .put("name", account)
                .put("namespace", options.namespace());
    }
}
