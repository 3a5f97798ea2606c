// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.FieldReader;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.ValidationErrors;
import io.nereid.control.api.config.InferenceServiceConfig;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Defaulting and validation of Kubernetes' core kinds such as Secret and ConfigMap. Stateless. */
final class CoreKindAdmission {
    private static final Pattern KEY = Pattern.compile("[-._a-zA-Z0-9]{1,253}");

    private static final int MOST_BYTES = 1 << 20;

    private CoreKindAdmission() {}

    static void defaults(ResourceKind kind, ObjectNode resource) {
        if (!kind.equals(ResourceKinds.SECRET)) {
            return;
        }
        if (!resource.has("type")) {
            resource.put("type", "Opaque");
        }
        Map<String, String> texts = FieldReader.of(resource).map("stringData");
        if (!texts.isEmpty()) {
            ObjectNode data = resource.withObjectProperty("data");
            texts.forEach((key, value) ->
                    data.put(key, Base64.getEncoder().encodeToString(value.getBytes(StandardCharsets.UTF_8))));
        }
        resource.remove("stringData");
    }

    static void check(
            ResourceKind kind,
            ObjectNode resource,
            @Nullable ObjectNode old,
            ValidationErrors problems,
            List<String> warnings) {
        FieldReader fields = FieldReader.of(resource);
        if (kind.equals(ResourceKinds.SECRET)) {
            long size = 0;
            for (Map.Entry<String, String> entry : fields.map("data").entrySet()) {
                key("data", entry.getKey(), problems);
                size += base64("data." + ValidationErrors.clip(entry.getKey()), entry.getValue(), problems);
            }
            size("data", size, problems);
            immutable(resource, old, problems, "data");
            if (old != null && !old.path("type").equals(resource.path("type"))) {
                problems.add(
                        "type", "a secret's type cannot be changed from " + ValidationErrors.shown(old.path("type")));
            }
        } else if (kind.equals(ResourceKinds.CONFIG_MAP)) {
            long size = 0;
            Map<String, String> data = fields.map("data");
            for (Map.Entry<String, String> entry : data.entrySet()) {
                key("data", entry.getKey(), problems);
                size += entry.getValue().getBytes(StandardCharsets.UTF_8).length;
            }
            for (Map.Entry<String, String> entry : fields.map("binaryData").entrySet()) {
                key("binaryData", entry.getKey(), problems);
                size += base64("binaryData." + ValidationErrors.clip(entry.getKey()), entry.getValue(), problems);
                if (data.containsKey(entry.getKey())) {
                    problems.add("binaryData." + ValidationErrors.clip(entry.getKey()), "this key is in data as well");
                }
            }
            size("data", size, problems);
            immutable(resource, old, problems, "data", "binaryData");
            if (InferenceServiceConfig.CONFIG_MAP.equals(
                    fields.object("metadata").text("name"))) {
                settings(resource, problems, warnings);
            }
        }
    }

    private static void settings(ObjectNode resource, ValidationErrors problems, List<String> warnings) {
        try {
            InferenceServiceConfig.unknown(resource).forEach(line -> warnings.add("data." + line));
            InferenceServiceConfig.read(resource).router().warnings().forEach(line -> warnings.add("data." + line));
        } catch (ServingException e) {
            e.getMessage().lines().forEach(line -> problems.add("data", line));
        }
    }

    private static void key(String path, String key, ValidationErrors problems) {
        if (!KEY.matcher(key).matches() || key.equals(".") || key.startsWith("..")) {
            problems.add(
                    path,
                    "the key \"" + ValidationErrors.clip(key)
                            + "\" must consist of letters, digits, '-', '_' or '.', must not"
                            + " begin with '..', and has 253 characters at most");
        }
    }

    private static int base64(String path, String value, ValidationErrors problems) {
        try {
            return Base64.getDecoder().decode(value.replace("\n", "").replace("\r", "")).length;
        } catch (IllegalArgumentException e) {
            problems.add(path, "not base64; write text under stringData, or encode it");
            return 0;
        }
    }

    private static void size(String path, long size, ValidationErrors problems) {
        if (size > MOST_BYTES) {
            problems.add(path, size + " bytes; all values together have " + MOST_BYTES + " at most");
        }
    }

    private static void immutable(
            ObjectNode resource, @Nullable ObjectNode old, ValidationErrors problems, String... names) {
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
