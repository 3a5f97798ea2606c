// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.spi;

import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * The settings of one fetch: the request's settings override the environment's. A request that gives an identity or an
 * endpoint of a store does not inherit any identity of that store from the environment, so that the server's own
 * credentials are never sent to an endpoint that a request names. Immutable.
 */
public final class StorageSettings {
    private final Map<String, String> values;
    private final boolean ownIdentity;
    private final Set<String> hidden;

    private StorageSettings(Map<String, String> values, boolean ownIdentity, Set<String> hidden) {
        this.values = values;
        this.ownIdentity = ownIdentity;
        this.hidden = hidden;
    }

    /**
     * Combines the settings of a request and of the server's environment.
     *
     * @param identities of the kinds of stores
     */
    public static StorageSettings of(
            Map<String, String> request, Map<String, String> environment, Collection<IdentitySettings> identities) {
        Map<String, String> values = new HashMap<>(environment);
        boolean own = false;
        Set<String> hidden = new HashSet<>();
        for (IdentitySettings family : identities) {
            boolean named = request.keySet().stream()
                    .anyMatch(key -> family.identity().contains(key)
                            || family.endpoints().contains(key));
            if (named) {
                own = true;
                values.keySet().removeAll(family.identity());
                hidden.addAll(family.identity());
            }
        }
        values.putAll(request);
        return new StorageSettings(Map.copyOf(values), own, Set.copyOf(hidden));
    }

    /**
     * Whether the server's own identity may be used for the setting's kind of store: the request does not override it.
     */
    public boolean ambient(String name) {
        return !hidden.contains(name);
    }

    /** The first of some names that has a value that is not empty. */
    public @Nullable String first(String... names) {
        for (String name : names) {
            String value = values.get(name);
            if (value != null && !value.isEmpty()) {
                return value;
            }
        }
        return null;
    }

    /** The value of a setting, or null if it is absent or empty. */
    public @Nullable String get(String name) {
        return first(name);
    }

    /** The value of a setting, or another one if it is absent or empty. */
    public String get(String name, String otherwise) {
        String value = first(name);
        return value == null ? otherwise : value;
    }

    /**
     * A boolean: {@code true}, {@code 1}, {@code yes}, {@code on}, or {@code false}, {@code 0}, {@code no},
     * {@code off}.
     */
    public boolean flag(String name, boolean otherwise) {
        String value = first(name);
        if (value == null) {
            return otherwise;
        }
        return switch (value.trim().toLowerCase(Locale.ROOT)) {
            case "true", "1", "yes", "on" -> true;
            case "false", "0", "no", "off" -> false;
            default ->
                throw ServingException.invalidArgument(
                        "storage setting " + name + " is '" + value + "'; expected true or false");
        };
    }

    /** A whole number of at least one. */
    public int count(String name, int otherwise) {
        String value = first(name);
        if (value == null) {
            return otherwise;
        }
        try {
            int number = Integer.parseInt(value.trim());
            if (number >= 1) {
                return number;
            }
        } catch (NumberFormatException e) {
            // Reported below.
        }
        throw ServingException.invalidArgument(
                "storage setting " + name + " is '" + value + "'; expected a whole number of at least 1");
    }

    /**
     * A setting that is the content itself if it begins with {@code begins}, else the path of a file with the content.
     */
    public @Nullable String text(String name, String begins) {
        String value = first(name);
        if (value == null || value.stripLeading().startsWith(begins)) {
            return value;
        }
        try {
            return Files.readString(Path.of(value), StandardCharsets.UTF_8);
        } catch (IOException | RuntimeException e) {
            throw ServingException.invalidArgument(
                    "storage setting " + name + " names a file that cannot be read: " + shortened(value),
                    "give the path of a readable file, or its content");
        }
    }

    private static String shortened(String value) {
        String line = value.lines().findFirst().orElse("");
        return line.length() > 200 || value.contains("-----") ? "(not a path)" : line;
    }

    /** All settings as one text for digests. It contains secrets: never log it. */
    public String identity() {
        return new TreeMap<>(values).toString() + ownIdentity;
    }

    /** Replaces the values of settings whose names indicate secrets. */
    public String redact(String text) {
        String redacted = text;
        for (Map.Entry<String, String> setting : values.entrySet()) {
            String name = setting.getKey().toUpperCase(Locale.ROOT);
            String value = setting.getValue();
            boolean secret = name.contains("SECRET")
                    || name.contains("TOKEN")
                    || name.contains("KEY")
                    || name.contains("PASSWORD")
                    || name.contains("HEADERS")
                    || name.contains("CREDENTIAL")
                    || name.contains("DOCKERCONFIG");
            if (secret && value.length() >= 6) {
                redacted = redacted.replace(value, "***");
            }
        }
        return redacted;
    }

    /** The number of settings only, since values may be secrets. */
    @Override
    public String toString() {
        return "StorageSettings[" + values.size() + "]";
    }
}
