// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.standard;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.kubernetes.cluster.Trees;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Conditions of a service by the rules that KServe has from Knative: {@code Ready} follows {@code PredictorReady} and
 * {@code IngressReady}, the last one that failed gives it the reason, and every other condition is for information.
 * Confined to one planning.
 */
public final class LivingConditions {
    public static final String READY = "Ready";
    public static final String PREDICTOR = "PredictorReady";
    public static final String INGRESS = "IngressReady";
    public static final String TRUE = "True";
    public static final String FALSE = "False";
    public static final String UNKNOWN = "Unknown";

    private static final List<String> DEPENDENTS = List.of(PREDICTOR, INGRESS);

    private final TreeMap<String, ObjectNode> all = new TreeMap<>();
    private final String now;

    /**
     * Creates the conditions of a status.
     *
     * @param status the status before; missing for none
     * @param now the time of what changes
     */
    public LivingConditions(JsonNode status, Instant now) {
        this.now = now.truncatedTo(ChronoUnit.SECONDS).toString();
        for (JsonNode one : status.path("conditions")) {
            all.put(one.path("type").asText(), one.deepCopy());
        }
    }

    /** Sets the conditions that every service has to unknown, when they are not there. */
    public void initialize() {
        if (all.containsKey(READY)) {
            return;
        }
        put(READY, UNKNOWN, null, null);
        for (String dependent : DEPENDENTS) {
            if (!all.containsKey(dependent)) {
                put(dependent, UNKNOWN, null, null);
            }
        }
    }

    /** Whether a condition is there and true. */
    public boolean isTrue(String type) {
        return status(type).equals(TRUE);
    }

    /** The status of a condition; empty when it is not there. */
    public String status(String type) {
        ObjectNode found = all.get(type);
        return found == null ? "" : found.path("status").asText();
    }

    /** Sets a condition, and {@code Ready} where that follows it. */
    public void set(String type, String status, @Nullable String reason, @Nullable String message) {
        put(type, status, reason, message);
        if (!DEPENDENTS.contains(type)) {
            return;
        }
        switch (status) {
            case TRUE -> recheck();
            case FALSE -> put(READY, FALSE, reason, message);
            default -> {
                if (DEPENDENTS.stream().anyMatch(one -> status(one).equals(FALSE))) {
                    if (!status(READY).equals(FALSE)) {
                        put(READY, FALSE, reason, message);
                    }
                } else {
                    put(READY, UNKNOWN, reason, message);
                }
            }
        }
    }

    /** Takes a condition away; {@code Ready} stays as it is. */
    public void remove(String type) {
        all.remove(type);
    }

    void clear() {
        all.clear();
    }

    private void recheck() {
        for (String status : List.of(FALSE, UNKNOWN)) {
            for (String dependent : DEPENDENTS) {
                ObjectNode one = all.get(dependent);
                if (one != null && one.path("status").asText().equals(status)) {
                    put(READY, status, text(one, "reason"), text(one, "message"));
                    return;
                }
            }
        }
        boolean whole = DEPENDENTS.stream().allMatch(all::containsKey);
        put(READY, whole ? TRUE : UNKNOWN, null, null);
    }

    private static @Nullable String text(ObjectNode condition, String field) {
        return condition.path(field).asText(null);
    }

    private void put(String type, String status, @Nullable String reason, @Nullable String message) {
        ObjectNode condition = Trees.object();
        condition.put("type", type).put("status", status);
        if (!type.equals(READY) && !DEPENDENTS.contains(type)) {
            condition.put("severity", "Info");
        }
        if (reason != null && !reason.isEmpty()) {
            condition.put("reason", reason);
        }
        if (message != null && !message.isEmpty()) {
            condition.put("message", message);
        }
        ObjectNode before = all.get(type);
        String since = before == null ? null : before.path("lastTransitionTime").asText(null);
        ObjectNode same = before == null ? Trees.object() : before.deepCopy();
        same.remove("lastTransitionTime");
        condition.put("lastTransitionTime", since != null && same.equals(condition) ? since : now);
        all.put(type, condition);
    }

    /** The types of the conditions that are false, in the order of their names. */
    public List<String> failed() {
        return all.entrySet().stream()
                .filter(one -> one.getValue().path("status").asText().equals(FALSE))
                .map(java.util.Map.Entry::getKey)
                .toList();
    }

    /** The conditions as they are written, by the order of their types. */
    public ArrayNode tree() {
        ArrayNode tree = Trees.object().putArray("conditions");
        all.values().forEach(one -> tree.add(one.deepCopy()));
        return tree;
    }
}
