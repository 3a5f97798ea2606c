// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.adopt;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import java.util.ArrayList;
import java.util.List;

/**
 * Switches KServe's controller off so that no pod starts without its model: while neither KServe's webhook for pods nor the
 * operator's answers, new pods of services are refused, and their ReplicaSets try again. Each call looks at the cluster anew and
 * does the steps that can be done; calling again goes on. Confined to one thread.
 *
 * <pre>{@code
 * KserveSwitch kserve = new KserveSwitch(client, "kserve", "nereid");
 * kserve.remaining().forEach(System.out::println);
 * kserve.switchOff().forEach(System.out::println);
 * }</pre>
 */
public final class KserveSwitch {
    private static final String CONTROLLER = "kserve-controller-manager";
    private static final String WEBHOOKS = ".serving.kserve.io";
    private static final String PODS = "pod-mutator";

    private final ClusterClient client;
    private final String namespace;
    private final String configuration;

    /**
     * @param client closed by the caller
     * @param namespace the namespace of KServe's controller
     * @param configuration the name of the operator's MutatingWebhookConfiguration
     */
    public KserveSwitch(KubernetesClient client, String namespace, String configuration) {
        this.client = new ClusterClient(client);
        this.namespace = namespace;
        this.configuration = configuration;
    }

    /** Whether the operator's webhook for pods is installed, and the API server trusts it. */
    public boolean completesPods() {
        ObjectNode own = client.get(ClusterKinds.MUTATING_WEBHOOK_CONFIGURATION, null, configuration);
        return own != null && own.at("/webhooks/0/clientConfig").has("caBundle");
    }

    /** What of KServe is on, a sentence for each; empty when nothing stands in the way of the operator. */
    public List<String> remaining() {
        List<String> all = new ArrayList<>();
        if (replicas() > 0) {
            all.add("Deployment " + namespace + "/" + CONTROLLER + " runs: it writes the objects of services");
        }
        for (ObjectNode one : webhooks(ClusterKinds.VALIDATING_WEBHOOK_CONFIGURATION)) {
            all.add("ValidatingWebhookConfiguration " + name(one) + " refuses changes of services while KServe is off");
        }
        for (ObjectNode one : webhooks(ClusterKinds.MUTATING_WEBHOOK_CONFIGURATION)) {
            all.add("MutatingWebhookConfiguration " + name(one)
                    + (others(one).size() < one.path("webhooks").size()
                            ? " refuses new pods of services while KServe is off"
                            : " refuses changes of services while KServe is off"));
        }
        return all;
    }

    /**
     * Scales KServe's controller to zero, deletes its webhooks for resources, and its webhook for pods once the operator's
     * answers.
     *
     * @return what was done, a sentence for each
     */
    public List<String> switchOff() {
        List<String> done = new ArrayList<>();
        if (replicas() > 0) {
            ObjectNode patch = JsonNodeFactory.instance.objectNode();
            patch.putObject("spec").put("replicas", 0);
            ObjectNode unused = client.merge(ClusterKinds.DEPLOYMENT, namespace, CONTROLLER, patch);
            done.add("Deployment " + namespace + "/" + CONTROLLER + " is scaled to 0");
        }
        for (ObjectNode one : webhooks(ClusterKinds.VALIDATING_WEBHOOK_CONFIGURATION)) {
            client.delete(ClusterKinds.VALIDATING_WEBHOOK_CONFIGURATION, null, name(one), null);
            done.add("ValidatingWebhookConfiguration " + name(one) + " is deleted");
        }
        boolean ready = completesPods();
        for (ObjectNode one : webhooks(ClusterKinds.MUTATING_WEBHOOK_CONFIGURATION)) {
            ArrayNode pods = JsonNodeFactory.instance.arrayNode();
            one.path("webhooks").forEach(webhook -> {
                if (isForPods(webhook)) {
                    pods.add(webhook);
                }
            });
            if (ready || pods.isEmpty()) {
                client.delete(ClusterKinds.MUTATING_WEBHOOK_CONFIGURATION, null, name(one), null);
                done.add("MutatingWebhookConfiguration " + name(one) + " is deleted");
            } else if (pods.size() < one.path("webhooks").size()) {
                ObjectNode patch = JsonNodeFactory.instance.objectNode();
                patch.set("webhooks", pods);
                ObjectNode unused = client.merge(ClusterKinds.MUTATING_WEBHOOK_CONFIGURATION, null, name(one), patch);
                done.add("MutatingWebhookConfiguration " + name(one) + " is for pods alone now");
            }
        }
        return done;
    }

    private int replicas() {
        ObjectNode controller = client.get(ClusterKinds.DEPLOYMENT, namespace, CONTROLLER);
        return controller == null ? 0 : controller.path("spec").path("replicas").asInt(1);
    }

    private List<ObjectNode> webhooks(ResourceKind kind) {
        return client.list(kind, null).stream()
                .filter(one -> name(one).endsWith(WEBHOOKS))
                .toList();
    }

    private static List<JsonNode> others(ObjectNode configuration) {
        List<JsonNode> all = new ArrayList<>();
        configuration.path("webhooks").forEach(webhook -> {
            if (!isForPods(webhook)) {
                all.add(webhook);
            }
        });
        return all;
    }

    private static boolean isForPods(JsonNode webhook) {
        return webhook.path("name").asText().contains(PODS);
    }

    private static String name(ObjectNode object) {
        return object.path("metadata").path("name").asText();
    }
}
