// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.component;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.core.Workload;
import io.nereid.control.core.WorkloadCodec;
import io.nereid.control.core.component.ComponentPlan.Problem;
import io.nereid.control.core.runtime.RuntimeSelection;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * The plan of one component by its current specification: the workload to run in the form of the site, or the problem
 * that prevents it. Immutable as long as the JSON trees are not modified.
 *
 * @param component the component
 * @param base the name of its revisions without the number, such as {@code iris-predictor}
 * @param template the workload without the name of a revision; null when there is a problem
 * @param problem the reason why it cannot run; null when it can
 * @param extension the fields that every component has
 * @param selection the selection of the runtime; null for custom containers
 * @param identity what of the workload's form makes another revision when it differs; null for all of the form
 */
public record WorkloadPlan(
        Workload.Component component,
        String base,
        @Nullable Workload template,
        @Nullable Problem problem,
        ComponentExtensionSpec extension,
        @Nullable RuntimeSelection selection,
        @Nullable JsonNode identity) {
    /** A plan in which everything of the form makes another revision. */
    public WorkloadPlan(
            Workload.Component component,
            String base,
            @Nullable Workload template,
            @Nullable Problem problem,
            ComponentExtensionSpec extension,
            @Nullable RuntimeSelection selection) {
        this(component, base, template, problem, extension, selection, null);
    }

    /** Prefixes of annotations that affect scaling and routing, not the running workload. */
    private static final List<String> NOT_IN_FINGERPRINT =
            List.of("autoscaling.knative.dev/", "nereid.io/", "serving.knative.dev/", "kubectl.kubernetes.io/");

    /**
     * A digest of everything that affects the running workload. A different fingerprint makes a new revision, so
     * scaling and the labels and annotations of the service as a whole are excluded. Object keys are sorted, because
     * their order has no meaning.
     */
    public String fingerprint() {
        ObjectNode tree = WorkloadCodec.write(java.util.Objects.requireNonNull(template));
        tree.remove(List.of("scaling", "revision", "labels", "annotations"));
        if (identity != null) {
            tree.set(WorkloadCodec.kind(template.form()), identity);
        }
        ObjectNode own = tree.putObject("own");
        extension.labels().forEach((key, value) -> own.put("l:" + key, value));
        extension.annotations().forEach((key, value) -> {
            if (NOT_IN_FINGERPRINT.stream().noneMatch(key::startsWith)) {
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
