// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Defaults and rules of Kubernetes' own kinds. Immutable. */
final class CoreRules {
    private static final Pattern KEY = Pattern.compile("[-._a-zA-Z0-9]{1,253}");

    private static final int MOST_BYTES = 1 << 20;

    private CoreRules() {}

    static void defaults(Kind kind, ObjectNode resource) {
        if (!kind.equals(Kinds.SECRET)) {
            return;
        }
        if (!resource.has("type")) {
            resource.put("type", "Opaque");
        }
        Map<String, String> texts = Fields.of(resource).map("stringData");
        if (!texts.isEmpty()) {
            ObjectNode data = resource.withObjectProperty("data");
            texts.forEach((key, value) ->
                    data.put(key, Base64.getEncoder().encodeToString(value.getBytes(StandardCharsets.UTF_8))));
        }
        resource.remove("stringData");
    }

    static void check(
            Kind kind, ObjectNode resource, @Nullable ObjectNode old, Problems problems, List<String> warnings) {
        Fields fields = Fields.of(resource);
        if (kind.equals(Kinds.SECRET)) {
            long size = 0;
            for (Map.Entry<String, String> entry : fields.map("data").entrySet()) {
                key("data", entry.getKey(), problems);
                size += base64("data." + Schema.clip(entry.getKey()), entry.getValue(), problems);
            }
            size("data", size, problems);
            immutable(resource, old, problems, "data");
            if (old != null && !old.path("type").equals(resource.path("type"))) {
                problems.add("type", "a secret's type cannot be changed from " + Schema.shown(old.path("type")));
            }
        } else if (kind.equals(Kinds.CONFIG_MAP)) {
            long size = 0;
            Map<String, String> data = fields.map("data");
            for (Map.Entry<String, String> entry : data.entrySet()) {
                key("data", entry.getKey(), problems);
                size += entry.getValue().getBytes(StandardCharsets.UTF_8).length;
            }
            for (Map.Entry<String, String> entry : fields.map("binaryData").entrySet()) {
                key("binaryData", entry.getKey(), problems);
                size += base64("binaryData." + Schema.clip(entry.getKey()), entry.getValue(), problems);
                if (data.containsKey(entry.getKey())) {
                    problems.add("binaryData." + Schema.clip(entry.getKey()), "this key is in data as well");
                }
            }
            size("data", size, problems);
            immutable(resource, old, problems, "data", "binaryData");
            if (ServiceConfig.CONFIG_MAP.equals(fields.object("metadata").text("name"))) {
                settings(resource, problems, warnings);
            }
        }
    }

    private static void settings(ObjectNode resource, Problems problems, List<String> warnings) {
        try {
            ServiceConfig.unknown(resource).forEach(line -> warnings.add("data." + line));
            ServiceConfig.read(resource);
        } catch (ServingException e) {
            e.getMessage().lines().forEach(line -> problems.add("data", line));
        }
    }

    private static void key(String path, String key, Problems problems) {
        if (!KEY.matcher(key).matches() || key.equals(".") || key.startsWith("..")) {
            problems.add(
                    path,
                    "the key \"" + Schema.clip(key) + "\" must consist of letters, digits, '-', '_' or '.', must not"
                            + " begin with '..', and has 253 characters at most");
        }
    }

    private static int base64(String path, String value, Problems problems) {
        try {
            return Base64.getDecoder().decode(value.replace("\n", "").replace("\r", "")).length;
        } catch (IllegalArgumentException e) {
            problems.add(path, "no base64; write text under stringData, or encode it");
            return 0;
        }
    }

    private static void size(String path, long size, Problems problems) {
        if (size > MOST_BYTES) {
            problems.add(path, size + " bytes; all values together have " + MOST_BYTES + " at most");
        }
    }

    private static void immutable(ObjectNode resource, @Nullable ObjectNode old, Problems problems, String... names) {
        if (old == null || !old.path("immutable").asBoolean(false)) {
            return;
        }
        if (!resource.path("immutable").asBoolean(false)) {
            problems.add("immutable", "cannot be unset; delete the resource and create another one");
        }
        for (String name : names) {
            if (!old.path(name).equals(resource.path(name))) {
                problems.add(name, "cannot be changed, because the resource is immutable");
            }
        }
    }
}
