// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.localmodel;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;

/**
 * Whether a volume's {@code nodeAffinity} selects a node, as Kubernetes decides it: one term must hold, and of a term all
 * expressions. See {@code NodeSelector} of the core API. Stateless.
 */
final class NodeSelection {
    private NodeSelection() {}

    /** The {@code required} selector of a group's volume; missing when every node is in the group. */
    static JsonNode of(JsonNode group) {
        JsonNode required = group.path("spec")
                .path("persistentVolumeSpec")
                .path("nodeAffinity")
                .path("required");
        return required.path("nodeSelectorTerms").isEmpty() ? MissingNode.getInstance() : required;
    }

    static boolean selects(JsonNode required, JsonNode node) {
        if (required.isMissingNode()) {
            return true;
        }
        for (JsonNode term : required.path("nodeSelectorTerms")) {
            if (termHolds(term, node)) {
                return true;
            }
        }
        return false;
    }

    private static boolean termHolds(JsonNode term, JsonNode node) {
        JsonNode expressions = term.path("matchExpressions");
        JsonNode fields = term.path("matchFields");
        if (expressions.isEmpty() && fields.isEmpty()) {
            return false; // an empty term selects nothing
        }
        JsonNode metadata = node.path("metadata");
        for (JsonNode one : expressions) {
            if (!holds(one, metadata.path("labels").path(one.path("key").asText()))) {
                return false;
            }
        }
        for (JsonNode one : fields) {
            boolean name = one.path("key").asText().equals("metadata.name");
            if (!holds(one, name ? metadata.path("name") : MissingNode.getInstance())) {
                return false;
            }
        }
        return true;
    }

    private static boolean holds(JsonNode expression, JsonNode value) {
        JsonNode values = expression.path("values");
        return switch (expression.path("operator").asText()) {
            case "In" -> value.isTextual() && contains(values, value.textValue());
            case "NotIn" -> !value.isTextual() || !contains(values, value.textValue());
            case "Exists" -> value.isTextual();
            case "DoesNotExist" -> !value.isTextual();
            case "Gt" -> compared(value, values) > 0;
            case "Lt" -> compared(value, values) < 0;
            default -> false;
        };
    }

    private static boolean contains(JsonNode values, String value) {
        for (JsonNode one : values) {
            if (one.asText().equals(value)) {
                return true;
            }
        }
        return false;
    }

    /** The sign of the difference to the only value; 0 when one of them is not an integer. */
    private static int compared(JsonNode value, JsonNode values) {
        try {
            return Long.compare(
                    Long.parseLong(value.asText("")),
                    Long.parseLong(values.path(0).asText("")));
        } catch (NumberFormatException e) {
            return 0;
        }
    }
}
