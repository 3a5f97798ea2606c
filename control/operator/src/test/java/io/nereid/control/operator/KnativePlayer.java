// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import static io.nereid.control.operator.OperatorCluster.tree;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import java.util.List;
import java.util.Locale;

/**
 * Does what Knative Serving does with a Knative Service: a revision for each generation, whose pods have Knative's queue,
 * and the status.
 *
 * @param client an administrator's client
 */
record KnativePlayer(ClusterClient client, String namespace) {
    /** A Knative Service; null for none. */
    ObjectNode service(String name) {
        return client.get(ClusterKinds.KNATIVE_SERVICE, namespace, name);
    }

    /** Makes the newest revision ready, and returns its name. */
    String ready(String name) {
        ObjectNode service = service(name);
        long generation = service.at("/metadata/generation").asLong();
        String latest = name + String.format(Locale.ROOT, "-%05d", generation);
        ObjectNode status = service.putObject("status");
        status.put("observedGeneration", generation);
        status.put("url", "http://" + name + "." + namespace + ".example.com");
        status.putObject("address").put("url", "http://" + name + "." + namespace + ".svc.cluster.local");
        status.put("latestCreatedRevisionName", latest).put("latestReadyRevisionName", latest);
        ArrayNode conditions = status.putArray("conditions");
        for (String type : List.of("Ready", "RoutesReady", "ConfigurationsReady")) {
            conditions.addObject().put("type", type).put("status", "True");
        }
        ArrayNode traffic = status.putArray("traffic");
        for (JsonNode wanted : service.at("/spec/traffic")) {
            ObjectNode target = wanted.deepCopy();
            if (target.path("latestRevision").asBoolean()) {
                target.put("revisionName", latest);
            }
            traffic.add(target);
        }
        ObjectNode unused = client.updateStatus(ClusterKinds.KNATIVE_SERVICE, service);
        return latest;
    }

    /** Makes a pod of the newest revision, and returns it as it is stored. */
    ObjectNode pod(String name, String revision) {
        JsonNode template = service(name).at("/spec/template");
        ObjectNode pod = tree("{'apiVersion':'v1','kind':'Pod'}");
        ObjectNode metadata = template.path("metadata").deepCopy();
        metadata.put("name", revision + "-pod").put("namespace", namespace);
        metadata.withObjectProperty("labels").put("serving.knative.dev/revision", revision);
        pod.set("metadata", metadata);
        ObjectNode spec = template.path("spec").deepCopy();
        spec.remove(List.of("containerConcurrency", "timeoutSeconds", "responseStartTimeoutSeconds"));
        ((ArrayNode) spec.get("containers"))
                .add(tree("{'name':'queue-proxy','image':'knative/queue','env':[{'name':'USER_PORT','value':'8080'},"
                        + "{'name':'SERVING_READINESS_PROBE','value':'{}'}]}"));
        pod.set("spec", spec);
        return client.create(ClusterKinds.POD, pod);
    }
}
