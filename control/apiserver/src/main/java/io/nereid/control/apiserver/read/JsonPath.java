// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.read;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The subset of JSONPath for printer columns: names, indices, {@code [*]} and {@code [?(@.name=='value')]}. Stateless.
 */
final class JsonPath {
    private static final Pattern STEP = Pattern.compile(
            "\\.([^.\\[\\]\\\\]+(?:\\\\\\.[^.\\[\\]\\\\]+)*)|\\[(\\d+|\\*)]|\\[\\?\\(@\\.([\\w.-]+)\\s*==\\s*([^)]*)\\)]");

    private JsonPath() {}

    /** All nodes that the path selects, in order, without nulls. An unsupported path selects nothing. */
    static List<JsonNode> find(JsonNode tree, String path) {
        List<JsonNode> found = List.of(tree);
        Matcher step = STEP.matcher(path);
        int at = 0;
        while (at < path.length() && step.find(at) && step.start() == at) {
            List<JsonNode> next = new ArrayList<>();
            for (JsonNode node : found) {
                follow(node, step, next);
            }
            found = next;
            at = step.end();
        }
        return at == path.length() ? found : List.of();
    }

    private static void follow(JsonNode node, Matcher step, List<JsonNode> next) {
        if (step.group(1) != null) {
            add(node.path(step.group(1).replace("\\.", ".")), next);
        } else if (step.group(2) != null) {
            if (step.group(2).equals("*")) {
                node.forEach(n -> add(n, next));
            } else {
                add(node.path(Integer.parseInt(step.group(2))), next);
            }
        } else {
            String expected = step.group(4).strip().replaceAll("^['\"]|['\"]$", "");
            String pointer = "/" + step.group(3).replace('.', '/');
            for (JsonNode element : node) {
                if (element.at(pointer).asText("").equals(expected)) {
                    next.add(element);
                }
            }
        }
    }

    private static void add(JsonNode node, List<JsonNode> next) {
        if (!node.isMissingNode() && !node.isNull()) {
            next.add(node);
        }
    }
}
