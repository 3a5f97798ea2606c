// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.config;

import io.nereid.base.ErrorCode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.base.Units;
import io.nereid.base.access.Permission;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.snakeyaml.engine.v2.api.Load;
import org.snakeyaml.engine.v2.api.LoadSettings;
import org.snakeyaml.engine.v2.exceptions.YamlEngineException;

/**
 * Reads {@code access.yaml} strictly: a field that is not known is an error, as a misspelt rule that is ignored would
 * leave something open. Confined to one call.
 *
 * <pre>{@code
 * roles:
 *   scorer:
 *     permissions: [infer, metadata, health]
 *     models: [iris, "fraud-*"]
 * bindings:
 *   - key: batch-job
 *     roles: [scorer]
 *     quota: {requestsPerSecond: 50, concurrentRequests: 8, bytesPerSecond: 20MiB}
 *   - certificate: "CN=ops,*"
 *     roles: [admin]
 * }</pre>
 */
public final class AccessConfigReader {
    private static final List<String> SYMMETRIC = List.of("HS256", "HS384", "HS512");
    private static final long MOST_BYTES = 1 << 20;
    private static final List<NamePattern> ANY = List.of(NamePattern.ANY);

    private final String where;

    /** Receives the errors, of which reading goes on to the next entry; null to end with the first one. */
    private final @Nullable List<ServingException> errors;

    private AccessConfigReader(String where, @Nullable List<ServingException> errors) {
        this.where = where;
        this.errors = errors;
    }

    /**
     * Reads a file.
     *
     * @throws ServingException NOT_FOUND when there is no such file, INVALID_ARGUMENT when its content is wrong
     */
    public static AccessConfig read(Path file) {
        return config(document(text(file), "'" + file + "'"), "'" + file + "'", null);
    }

    /** The errors of a file: the first one of each entry, and what cannot be read at all; empty for a valid file. */
    public static List<ServingException> errors(Path file) {
        List<ServingException> errors = new ArrayList<>();
        try {
            AccessConfig unused = config(document(text(file), "'" + file + "'"), "'" + file + "'", errors);
        } catch (ServingException e) {
            errors.add(e);
        }
        return errors;
    }

    private static String text(Path file) {
        try {
            if (Files.size(file) > MOST_BYTES) {
                throw ServingException.invalidArgument(
                        "'" + file + "' is larger than " + MOST_BYTES + " bytes (expected: an access configuration)");
            }
            return Files.readString(file);
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.NOT_FOUND, "cannot read the access configuration '" + file + "': " + e.getMessage(), e);
        }
    }

    /**
     * Reads a text.
     *
     * @param where the name of the text in error messages
     */
    public static AccessConfig read(String text, String where) {
        return config(document(text, where), where, null);
    }

    /** The values of an empty file, without starting the reader of YAML. */
    static AccessConfig defaults() {
        return config(null, "the default", null);
    }

    private static @Nullable Object document(String text, String where) {
        try {
            return new Load(LoadSettings.builder()
                            .setLabel(where)
                            .setMaxAliasesForCollections(50)
                            .setAllowDuplicateKeys(false)
                            .build())
                    .loadFromString(text);
        } catch (YamlEngineException e) {
            throw ServingException.invalidArgument(where + " is not YAML: " + e.getMessage());
        }
    }

    private static AccessConfig config(
            @Nullable Object document, String where, @Nullable List<ServingException> errors) {
        return new AccessConfigReader(where, errors).config(document == null ? Map.of() : document);
    }

    /** Reads an entry; an error ends the reading, or is noted. */
    private void entry(Runnable reading) {
        List<ServingException> into = errors;
        try {
            reading.run();
        } catch (ServingException e) {
            if (into == null) {
                throw e;
            }
            into.add(e);
        }
    }

    private AccessConfig config(Object document) {
        Map<String, Object> map = map(document, "", "roles", "anonymous", "local", "bindings", "tokens", "quotas");
        Map<String, Role> roles = new LinkedHashMap<>(Role.builtIn());
        roles.put(AccessConfig.HEALTH, new Role(AccessConfig.HEALTH, EnumSet.of(Permission.HEALTH), ANY, ANY));
        Object given = map.get("roles");
        if (given != null) {
            anyMap(given, "roles")
                    .forEach((name, value) -> entry(() -> {
                        roles.put(name, new Role(name, Set.of(), ANY, ANY)); // known, even if there is an error in it
                        roles.put(name, role(name, value));
                    }));
        }
        List<Binding> bindings = new ArrayList<>();
        int number = 0;
        for (Object binding : list(map.get("bindings"), "bindings")) {
            String path = "bindings[" + number++ + "]";
            entry(() -> {
                Binding read = binding(binding, path);
                bindings.add(read);
                known(roles, read.roles(), path + ".roles");
            });
        }
        List<JwtConfig> tokens = new ArrayList<>();
        number = 0;
        for (Object token : list(map.get("tokens"), "tokens")) {
            String path = "tokens[" + number++ + "]";
            entry(() -> tokens.add(token(token, path)));
        }
        Map<NamePattern, Quota> quotas = new LinkedHashMap<>();
        Object quotaMap = map.get("quotas");
        if (quotaMap != null) {
            Object models = map(quotaMap, "quotas", "models").get("models");
            if (models != null) {
                anyMap(models, "quotas.models")
                        .forEach((name, value) ->
                                entry(() -> quotas.put(new NamePattern(name), quota(value, "quotas.models." + name))));
            }
        }
        List<String> anonymous = map.containsKey("anonymous")
                ? strings(map.get("anonymous"), "anonymous")
                : List.of(AccessConfig.HEALTH);
        List<String> local = strings(map.get("local"), "local");
        entry(() -> known(roles, anonymous, "anonymous"));
        entry(() -> known(roles, local, "local"));
        return new AccessConfig(
                Collections.unmodifiableMap(roles),
                anonymous,
                local,
                List.copyOf(bindings),
                List.copyOf(tokens),
                Collections.unmodifiableMap(quotas));
    }

    private void known(Map<String, Role> roles, List<String> names, String path) {
        for (String name : names) {
            if (!roles.containsKey(name)) {
                throw wrong(
                        path,
                        "there is no role '" + name + "' (the roles are " + String.join(", ", roles.keySet()) + ")");
            }
        }
    }

    private Role role(String name, Object value) {
        String path = "roles." + name;
        Map<String, Object> map = map(value, path, "permissions", "models", "namespaces");
        Set<Permission> permissions = EnumSet.noneOf(Permission.class);
        for (String text : strings(required(map, "permissions", path), path + ".permissions")) {
            if (text.equals("*")) {
                permissions.addAll(Arrays.asList(Permission.values()));
            } else {
                try {
                    permissions.add(Permission.of(text));
                } catch (ServingException e) {
                    throw wrong(path + ".permissions", e.describe());
                }
            }
        }
        return new Role(
                name,
                permissions,
                patterns(map.get("models"), path + ".models"),
                patterns(map.get("namespaces"), path + ".namespaces"));
    }

    private List<NamePattern> patterns(@Nullable Object value, String path) {
        if (value == null) {
            return ANY;
        }
        return strings(value, path).stream().map(NamePattern::new).toList();
    }

    private Binding binding(Object value, String path) {
        Map<String, Object> map = map(value, path, "key", "certificate", "claim", "value", "roles", "quota");
        int kinds = (map.containsKey("key") ? 1 : 0)
                + (map.containsKey("certificate") ? 1 : 0)
                + (map.containsKey("claim") ? 1 : 0);
        if (kinds != 1) {
            throw wrong(path, "has " + kinds + " of 'key', 'certificate' and 'claim' (expected: exactly one)");
        }
        String claim = text(map.get("claim"), path + ".claim");
        if (claim != null && !map.containsKey("value")) {
            throw wrong(path, "has a 'claim' without a 'value' (expected: a pattern, such as ml-team or *)");
        }
        return new Binding(
                pattern(map, "key", path),
                pattern(map, "certificate", path),
                claim,
                pattern(map, "value", path),
                strings(map.get("roles"), path + ".roles"),
                map.get("quota") == null ? Quota.NONE : quota(map.get("quota"), path + ".quota"));
    }

    private @Nullable NamePattern pattern(Map<String, Object> map, String field, String path) {
        String text = text(map.get(field), path + "." + field);
        return text == null ? null : new NamePattern(text);
    }

    private JwtConfig token(Object value, String path) {
        Map<String, Object> map = map(
                value,
                path,
                "issuer",
                "audience",
                "algorithms",
                "jwks",
                "allowedHosts",
                "clockSkew",
                "subjectClaim",
                "rolesClaim");
        String issuer = text(required(map, "issuer", path), path + ".issuer");
        List<String> audiences = strings(required(map, "audience", path), path + ".audience");
        List<String> algorithms = map.containsKey("algorithms")
                ? strings(map.get("algorithms"), path + ".algorithms")
                : JwtConfig.DEFAULT_ALGORITHMS;
        for (String algorithm : algorithms) {
            if (!JwtConfig.DEFAULT_ALGORITHMS.contains(algorithm)) {
                throw wrong(
                        path + ".algorithms",
                        "'" + algorithm + "' is not accepted"
                                + (SYMMETRIC.contains(algorithm) ? ", as its key is shared" : "") + " (expected: of "
                                + String.join(", ", JwtConfig.DEFAULT_ALGORITHMS) + ")");
            }
        }
        String jwks = text(map.get("jwks"), path + ".jwks");
        if (jwks != null
                && jwks.startsWith("http:")
                && !jwks.startsWith("http://127.0.0.1")
                && !jwks.startsWith("http://localhost")) {
            throw wrong(path + ".jwks", "'" + jwks + "' is not encrypted (expected: https, or a file)");
        }
        String skew = text(map.get("clockSkew"), path + ".clockSkew");
        String subject = text(map.get("subjectClaim"), path + ".subjectClaim");
        String roles = text(map.get("rolesClaim"), path + ".rolesClaim");
        return new JwtConfig(
                issuer == null ? "" : issuer,
                audiences,
                algorithms,
                jwks == null ? "" : jwks,
                strings(map.get("allowedHosts"), path + ".allowedHosts"),
                skew == null ? Duration.ofSeconds(60) : duration(skew, path + ".clockSkew"),
                subject == null ? "sub" : subject,
                roles == null ? "" : roles);
    }

    private Duration duration(String text, String path) {
        try {
            return Units.duration(text);
        } catch (ServingException e) {
            throw wrong(path, e.describe());
        }
    }

    private Quota quota(Object value, String path) {
        Map<String, Object> map = map(value, path, "requestsPerSecond", "concurrentRequests", "bytesPerSecond");
        double requests = number(map.get("requestsPerSecond"), path + ".requestsPerSecond");
        double concurrent = number(map.get("concurrentRequests"), path + ".concurrentRequests");
        if (concurrent != Math.rint(concurrent)) {
            throw wrong(path + ".concurrentRequests", "is " + concurrent + " (expected: a whole number)");
        }
        long bytes = 0;
        Object rate = map.get("bytesPerSecond");
        if (rate instanceof Number n) {
            bytes = n.longValue();
        } else if (rate != null) {
            try {
                bytes = Units.bytes(String.valueOf(rate));
            } catch (ServingException e) {
                throw wrong(path + ".bytesPerSecond", e.describe());
            }
        }
        if (bytes < 0) {
            throw wrong(path + ".bytesPerSecond", "is " + bytes + " (expected: more than 0)");
        }
        return new Quota(requests, (int) concurrent, bytes);
    }

    private double number(@Nullable Object value, String path) {
        if (value == null) {
            return 0;
        }
        if (!(value instanceof Number n) || !(n.doubleValue() > 0) || n.doubleValue() > Integer.MAX_VALUE) {
            throw wrong(path, "is '" + value + "' (expected: a number above 0)");
        }
        return n.doubleValue();
    }

    // ---- the forms of values

    private ServingException wrong(String path, String what) {
        return ServingException.invalidArgument(where + (path.isEmpty() ? ": " : ": " + path + ": ") + what);
    }

    private Object required(Map<String, Object> map, String field, String path) {
        Object value = map.get(field);
        if (value == null) {
            throw wrong(path, "has no '" + field + "'");
        }
        return value;
    }

    private Map<String, Object> anyMap(Object value, String path) {
        if (!(value instanceof Map<?, ?> given)) {
            throw wrong(path, "is '" + value + "' (expected: a map)");
        }
        Map<String, Object> map = new LinkedHashMap<>();
        given.forEach((k, v) -> map.put(String.valueOf(k), v));
        return map;
    }

    private Map<String, Object> map(Object value, String path, String... fields) {
        Map<String, Object> map = anyMap(value, path);
        for (String key : map.keySet()) {
            if (!Arrays.asList(fields).contains(key)) {
                throw wrong(
                        path,
                        "unknown field '" + key + "' (expected: " + String.join(", ", fields) + ")"
                                + hint(key, fields));
            }
        }
        return map;
    }

    private static String hint(String key, String... fields) {
        List<String> nearest = NameSuggestions.nearest(key, List.of(fields));
        return nearest.isEmpty() ? "" : "; did you mean '" + nearest.get(0) + "'?";
    }

    private List<?> list(@Nullable Object value, String path) {
        if (value == null) {
            return List.of();
        }
        if (!(value instanceof List<?> list)) {
            throw wrong(path, "is '" + value + "' (expected: a list)");
        }
        return list;
    }

    /** A list of strings; one string is a list of one. */
    private List<String> strings(@Nullable Object value, String path) {
        if (value instanceof String one) {
            return List.of(one);
        }
        List<String> strings = new ArrayList<>();
        for (Object item : list(value, path)) {
            String text = text(item, path);
            if (text == null || text.isEmpty()) {
                throw wrong(path, "has an empty entry");
            }
            strings.add(text);
        }
        return List.copyOf(strings);
    }

    private @Nullable String text(@Nullable Object value, String path) {
        if (value == null) {
            return null;
        }
        if (value instanceof Map || value instanceof List) {
            throw wrong(path, "is '" + value + "' (expected: a text)");
        }
        return String.valueOf(value);
    }
}
