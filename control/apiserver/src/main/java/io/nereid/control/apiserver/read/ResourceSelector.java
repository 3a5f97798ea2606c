// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.read;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.apiserver.pod.PodView;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Selects resources by label and field selectors, in Kubernetes' syntax. Immutable. */
public final class ResourceSelector {
    private static final Pattern SET = Pattern.compile("(\\S+)\\s+(in|notin)\\s*\\(([^)]*)\\)");
    private static final Pattern EQUALITY = Pattern.compile("([^=!\\s]+)\\s*(==|=|!=)\\s*(\\S*)");
    private static final Pattern LABEL = Pattern.compile("[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?");
    private static final Set<String> EVENT_FIELDS = Set.of(
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type");

    private final List<Predicate<JsonNode>> all = new ArrayList<>();

    /**
     * Parses selectors.
     *
     * @throws ServingException INVALID_ARGUMENT for a syntax error or an unsupported field
     */
    public ResourceSelector(ResourceKind kind, @Nullable String labels, @Nullable String fields) {
        if (labels != null && !labels.isBlank()) {
            for (String part : split(labels)) {
                all.add(label(part.strip()));
            }
        }
        if (fields != null && !fields.isBlank()) {
            for (String part : fields.split(",", -1)) {
                all.add(field(kind, part.strip()));
            }
        }
    }

    public boolean matches(JsonNode resource) {
        for (Predicate<JsonNode> one : all) {
            if (!one.test(resource)) {
                return false;
            }
        }
        return true;
    }

    boolean selectsAll() {
        return all.isEmpty();
    }

    /** Splits at commas outside parentheses. */
    private static List<String> split(String text) {
        List<String> parts = new ArrayList<>();
        int depth = 0;
        int from = 0;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            depth += c == '(' ? 1 : c == ')' ? -1 : 0;
            if (c == ',' && depth == 0) {
                parts.add(text.substring(from, i));
                from = i + 1;
            }
        }
        parts.add(text.substring(from));
        return parts;
    }

    private static Predicate<JsonNode> label(String part) {
        Matcher set = SET.matcher(part);
        if (set.matches()) {
            String key = set.group(1);
            List<String> values = List.of(set.group(3).strip().split("\\s*,\\s*", -1));
            boolean in = set.group(2).equals("in");
            return r -> {
                JsonNode value = labels(r).get(key);
                return value == null ? !in : values.contains(value.asText()) == in;
            };
        }
        Matcher equality = EQUALITY.matcher(part);
        if (equality.matches()) {
            String key = equality.group(1);
            String expected = equality.group(3);
            boolean same = !equality.group(2).equals("!=");
            return r -> {
                JsonNode value = labels(r).get(key);
                return (value != null && value.asText().equals(expected)) == same;
            };
        }
        boolean absent = part.startsWith("!");
        String key = absent ? part.substring(1).strip() : part;
        if (!LABEL.matcher(key).matches()) {
            throw ServingException.invalidArgument("unable to parse requirement: '" + part
                    + "' is not a label selector (expected key, !key, key=value, key!=value, key in (a,b) or key notin"
                    + " (a,b))");
        }
        return r -> labels(r).has(key) != absent;
    }

    private static JsonNode labels(JsonNode resource) {
        return resource.path("metadata").path("labels");
    }

    private static Predicate<JsonNode> field(ResourceKind kind, String part) {
        Matcher equality = EQUALITY.matcher(part);
        if (!equality.matches()) {
            throw ServingException.invalidArgument("invalid field selector '" + part + "' (expected field=value)");
        }
        String field = equality.group(1);
        String expected = equality.group(3);
        boolean same = !equality.group(2).equals("!=");
        if (!(field.equals("metadata.name")
                || field.equals("metadata.namespace") && kind.namespaced()
                || kind.kind().equals("Event") && EVENT_FIELDS.contains(field)
                || kind.kind().equals("Secret") && field.equals("type")
                || (kind.kind().equals("Namespace") || kind == PodView.KIND) && field.equals("status.phase"))) {
            throw ServingException.invalidArgument("field label not supported: " + field);
        }
        String pointer = "/" + (field.equals("source") ? "source/component" : field.replace('.', '/'));
        return r -> r.at(pointer).asText("").equals(expected) == same;
    }
}
