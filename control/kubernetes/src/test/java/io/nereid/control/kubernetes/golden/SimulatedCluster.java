// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.golden;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.kubernetes.cluster.Trees;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * A namespace whose Deployments get pods at once: ready where a node takes them, pending where none does. It does what
 * the Deployment controller and a Gateway do, no more.
 */
final class SimulatedCluster {
    /** What is there, by key; Deployments with the templates that are applied. */
    final Map<String, ObjectNode> objects = new TreeMap<>();

    /** The same objects with the templates before anything is added to the pods. */
    final Map<String, ObjectNode> bare = new TreeMap<>();

    final List<ObjectNode> pods = new ArrayList<>();
    boolean cordoned = true;

    /** How often the specifications of objects have changed, which numbers Knative's revisions. */
    private final Map<String, Integer> generations = new TreeMap<>();

    private int clock;

    void put(ObjectNode object) {
        objects.put(Trees.key(object), object.deepCopy());
        bare.put(Trees.key(object), object.deepCopy());
    }

    void remove(String key) {
        generations.remove(key);
        objects.remove(key);
        bare.remove(key);
    }

    /** Applies an object as the API server would; returns whether anything changed. */
    boolean apply(ObjectNode object, ObjectNode before) {
        String key = Trees.key(object);
        ObjectNode there = objects.get(key);
        ObjectNode whole = ApiDefaults.stored(object);
        ObjectNode plain = ApiDefaults.stored(before);
        if (there != null
                && object.path("kind").asText().equals("Deployment")
                && !object.path("spec").has("replicas")) {
            int replicas = there.path("spec").path("replicas").asInt(1);
            ((ObjectNode) whole.get("spec")).put("replicas", replicas);
            ((ObjectNode) plain.get("spec")).put("replicas", replicas);
        }
        ObjectNode same = there == null ? Trees.object() : there.deepCopy();
        same.remove("status");
        boolean changed = !same.equals(whole) || !plain.equals(bare.get(key));
        if (there != null && !there.path("spec").equals(whole.path("spec"))) {
            generations.merge(key, 2, (count, first) -> count + 1);
        }
        if (there != null && there.has("status")) {
            whole.set("status", there.get("status"));
        }
        objects.put(key, whole);
        bare.put(key, plain);
        return changed;
    }

    /** The controllers' turn; returns whether anything changed. */
    boolean settle() {
        Map<String, JsonNode> before = new LinkedHashMap<>();
        objects.forEach((key, object) -> before.put(key, object.path("status").deepCopy()));
        List<ObjectNode> podsBefore = new ArrayList<>();
        pods.forEach(one -> podsBefore.add(one.deepCopy()));
        Map<String, ObjectNode> deployments = new LinkedHashMap<>();
        objects.forEach((key, object) -> {
            if (object.path("kind").asText().equals("Deployment")) {
                deployments.put(object.path("metadata").path("name").asText(), object);
            }
            if (object.path("kind").asText().equals("HTTPRoute")) {
                accept(object);
            }
            if (Trees.kind(object).equals(Trees.KNATIVE_SERVICE) && !cordoned) {
                revision(object, generations.getOrDefault(key, 1));
            }
        });
        pods.removeIf(one -> !deployments.containsKey(one.path("of").asText()));
        deployments.forEach(this::deployment);
        Map<String, JsonNode> after = new LinkedHashMap<>();
        objects.forEach((key, object) -> after.put(key, object.path("status")));
        return !before.equals(after) || !podsBefore.equals(pods);
    }

    private static void accept(ObjectNode route) {
        ObjectNode status = route.putObject("status");
        ObjectNode parent = status.putArray("parents").addObject();
        for (String type : List.of("Accepted", "ResolvedRefs")) {
            Trees.list(parent, "conditions").addObject().put("type", type).put("status", "True");
        }
    }

    /** What Knative Serving does: a revision for each specification, ready at once. */
    private static void revision(ObjectNode service, int generation) {
        JsonNode meta = service.path("metadata");
        String name = meta.path("name").asText();
        String host = name + "." + meta.path("namespace").asText();
        String latest = name + String.format(java.util.Locale.ROOT, "-%05d", generation);
        ObjectNode status = service.putObject("status");
        status.put("url", "http://" + host + ".example.com");
        status.putObject("address").put("url", "http://" + host + ".svc.cluster.local");
        status.put("latestCreatedRevisionName", latest).put("latestReadyRevisionName", latest);
        for (String type : List.of("Ready", "RoutesReady", "ConfigurationsReady")) {
            Trees.list(status, "conditions").addObject().put("type", type).put("status", "True");
        }
        for (JsonNode wanted : service.at("/spec/traffic")) {
            ObjectNode target = Trees.list(status, "traffic").addObject();
            target.setAll((ObjectNode) wanted.deepCopy());
            if (wanted.path("latestRevision").asBoolean()) {
                target.put("revisionName", latest);
            }
            if (wanted.has("tag")) {
                target.put("url", "http://" + wanted.path("tag").asText() + "-" + host + ".example.com");
            }
        }
    }

    private void deployment(String name, ObjectNode deployment) {
        JsonNode template = deployment.at("/spec/template");
        String hash = Integer.toHexString(template.toString().hashCode());
        int replicas = deployment.path("spec").path("replicas").asInt(1);
        List<ObjectNode> own = new ArrayList<>();
        for (ObjectNode pod : pods) {
            if (pod.path("of").asText().equals(name)) {
                own.add(pod);
            }
        }
        List<ObjectNode> current = own.stream()
                .filter(one -> one.path("hash").asText().equals(hash))
                .toList();
        for (int i = current.size(); i < replicas; i++) {
            pods.add(pod(name, hash, template));
        }
        for (ObjectNode pod : pods) {
            if (pod.path("of").asText().equals(name)
                    && !cordoned
                    && pod.path("waits").asBoolean()) {
                pod.put("waits", false);
                ready(pod);
            }
        }
        boolean serves = pods.stream()
                        .filter(one -> one.path("of").asText().equals(name)
                                && one.path("hash").asText().equals(hash)
                                && isReady(one))
                        .count()
                >= replicas;
        if (serves) {
            pods.removeIf(one -> one.path("of").asText().equals(name)
                    && !one.path("hash").asText().equals(hash));
        }
        boolean rolled = serves;
        pods.removeIf(one -> one.path("of").asText().equals(name)
                && !one.path("hash").asText().equals(hash)
                && !isReady(one));
        trim(name, hash, replicas);
        int available = (int) pods.stream()
                .filter(one -> one.path("of").asText().equals(name) && isReady(one))
                .count();
        status(name, deployment, rolled, available, replicas, hash);
    }

    private void trim(String name, String hash, int replicas) {
        int count = 0;
        for (Iterator<ObjectNode> each = pods.iterator(); each.hasNext(); ) {
            ObjectNode pod = each.next();
            if (pod.path("of").asText().equals(name)
                    && pod.path("hash").asText().equals(hash)
                    && ++count > replicas) {
                each.remove();
            }
        }
    }

    private void status(String name, ObjectNode deployment, boolean rolled, int available, int replicas, String hash) {
        boolean progressed =
                rolled || deployment.path("status").path("hash").asText().equals(hash);
        ObjectNode status = deployment.putObject("status");
        if (progressed) {
            status.put("hash", hash);
        }
        if (available > 0) {
            status.put("availableReplicas", available);
        }
        boolean enough = available >= Math.max(1, replicas * 3 / 4);
        condition(
                status,
                "Available",
                enough ? "True" : "False",
                enough ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
                enough ? "Deployment has minimum availability." : "Deployment does not have minimum availability.");
        condition(
                status,
                "Progressing",
                "True",
                progressed ? "NewReplicaSetAvailable" : "ReplicaSetUpdated",
                "ReplicaSet \"" + name + "-HASH\" "
                        + (progressed ? "has successfully progressed." : "is progressing."));
    }

    private static void condition(ObjectNode status, String type, String value, String reason, String message) {
        Trees.list(status, "conditions")
                .addObject()
                .put("type", type)
                .put("status", value)
                .put("reason", reason)
                .put("message", message);
    }

    private ObjectNode pod(String name, String hash, JsonNode template) {
        ObjectNode pod = Trees.object();
        pod.put("of", name).put("hash", hash).put("waits", cordoned);
        ObjectNode meta = pod.putObject("metadata");
        meta.set("labels", template.path("metadata").path("labels").deepCopy());
        meta.put(
                "creationTimestamp",
                String.format(java.util.Locale.ROOT, "2026-01-01T00:%02d:%02dZ", clock / 60, clock % 60));
        clock++;
        if (cordoned) {
            pod.putObject("status").put("phase", "Pending");
        } else {
            ready(pod);
        }
        return pod;
    }

    private static void ready(ObjectNode pod) {
        ObjectNode status = pod.putObject("status");
        status.put("phase", "Running");
        Trees.list(status, "conditions").addObject().put("type", "Ready").put("status", "True");
        ObjectNode server = Trees.list(status, "containerStatuses").addObject();
        server.put("name", "kserve-container").putObject("state").putObject("running");
    }

    static boolean isReady(ObjectNode pod) {
        ObjectNode ready = Trees.find(pod.path("status").path("conditions"), "type", "Ready");
        return ready != null && ready.path("status").asText().equals("True");
    }

    void podStatus(JsonNode change) {
        String[] label = change.path("labels").asText().split("=", 2);
        for (ObjectNode pod : pods) {
            boolean fits =
                    pod.path("metadata").path("labels").path(label[0]).asText().equals(label[1])
                            && (!change.has("phase")
                                    || change.path("phase")
                                            .asText()
                                            .equals(pod.path("status")
                                                    .path("phase")
                                                    .asText()));
            if (fits) {
                pod.set("status", change.path("status").deepCopy());
            }
        }
    }
}
