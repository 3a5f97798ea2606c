// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * What a component is to run by its present specification. Immutable.
 *
 * @param component which part
 * @param base the name of its revisions without their numbers, such as {@code iris-predictor}
 * @param template the workload, without a revision's name; null when there is a problem
 * @param problem why it cannot run; null when it can
 * @param extension the component's fields that every component has
 * @param selection of the runtime; null for containers
 */
record Draft(
        Workload.Component component,
        String base,
        @Nullable Workload template,
        @Nullable Problem problem,
        ComponentExtensionSpec extension,
        @Nullable RuntimeSelection selection) {
    /** Prefixes of annotations that change how a service is scaled and reached, not what runs. */
    private static final List<String> OUTSIDE =
            List.of("autoscaling.knative.dev/", "nereid.io/", "serving.knative.dev/", "kubectl.kubernetes.io/");

    /** Why something cannot be: a word and a sentence. */
    record Problem(String reason, String message) {}

    /** A digest of all that makes a difference to what runs: not the scale, not what is only said of the whole service. */
    String fingerprint() {
        ObjectNode tree = WorkloadTrees.write(java.util.Objects.requireNonNull(template));
        tree.remove(List.of("scaling", "revision", "labels", "annotations"));
        ObjectNode own = tree.putObject("own");
        extension.labels().forEach((key, value) -> own.put("l:" + key, value));
        extension.annotations().forEach((key, value) -> {
            if (OUTSIDE.stream().noneMatch(key::startsWith)) {
                own.put("a:" + key, value);
            }
        });
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256")
                    .digest(sorted(tree).toString().getBytes(StandardCharsets.UTF_8));
            return HexFormat.of().formatHex(digest, 0, 12);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java has SHA-256", e);
        }
    }

    private static JsonNode sorted(JsonNode tree) {
        if (tree instanceof ObjectNode object) {
            ObjectNode copy = JsonNodeFactory.instance.objectNode();
            Set<String> names = new TreeSet<>();
            object.fieldNames().forEachRemaining(names::add);
            names.forEach(name -> copy.set(name, sorted(object.get(name))));
            return copy;
        }
        if (tree instanceof ArrayNode array) {
            ArrayNode copy = JsonNodeFactory.instance.arrayNode();
            array.forEach(element -> copy.add(sorted(element)));
            return copy;
        }
        return tree;
    }
}
