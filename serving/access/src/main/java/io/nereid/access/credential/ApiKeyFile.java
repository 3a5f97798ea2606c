// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.credential;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.time.format.DateTimeParseException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.snakeyaml.engine.v2.api.Load;
import org.snakeyaml.engine.v2.api.LoadSettings;
import org.snakeyaml.engine.v2.exceptions.YamlEngineException;

/**
 * A file of API keys in JSON, and the file beside it with the times of their last use. Both are replaced as a whole, so
 * that a reader never sees half of one; changes of the keys are made one at a time, under a lock between processes.
 * Thread-safe: stateless but for the path.
 *
 * <pre>{@code
 * {"keys": [{"name": "batch-job", "id": "0a1b2c3d4e5f", "sha256": "…", "roles": ["client"],
 *            "created": "2026-01-31T10:00:00Z", "expires": "2026-12-31T00:00:00Z"}]}
 * }</pre>
 */
public final class ApiKeyFile {
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._@-]{0,99}");
    private static final Pattern ID = Pattern.compile("[0-9a-f]{12}");
    private static final Pattern HASH = Pattern.compile("[0-9a-f]{64}");
    private static final long MOST_BYTES = 16 << 20;

    private final Path file;

    /** The keys of a file, which need not exist yet. */
    public ApiKeyFile(Path file) {
        this.file = file;
    }

    /** The file. */
    public Path path() {
        return file;
    }

    /**
     * Checks the name of a key.
     *
     * @throws ServingException INVALID_ARGUMENT for one that cannot be used
     */
    public static void checkName(String name) {
        if (!NAME.matcher(name).matches()) {
            throw ServingException.invalidArgument("key name '" + name
                    + "' is not valid (expected: up to 100 letters, digits and . _ @ -, a letter or digit first)");
        }
    }

    /**
     * Reads the keys, in the order of the file; none when there is no file.
     *
     * @throws ServingException INVALID_ARGUMENT when the content is wrong, FAILED_PRECONDITION when the file cannot be
     *     read
     */
    public List<ApiKey> read() {
        Object document;
        try {
            if (Files.size(file) > MOST_BYTES) {
                throw wrong("is larger than " + MOST_BYTES + " bytes");
            }
            document = new Load(LoadSettings.builder().setLabel(file.toString()).build())
                    .loadFromString(Files.readString(file));
        } catch (NoSuchFileException e) {
            return List.of();
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION, "cannot read the API keys '" + file + "': " + e.getMessage(), e);
        } catch (YamlEngineException e) {
            throw wrong("is not JSON: " + e.getMessage());
        }
        if (!(document instanceof Map<?, ?> map) || !(map.get("keys") instanceof List<?> list)) {
            throw wrong("has no list 'keys'");
        }
        List<ApiKey> keys = new ArrayList<>();
        Set<String> names = new HashSet<>();
        for (Object item : list) {
            if (!(item instanceof Map<?, ?> fields)) {
                throw wrong("has an entry that is not an object");
            }
            ApiKey key = key(fields);
            if (!names.add(key.name())) {
                throw wrong("has two keys of the name '" + key.name() + "'");
            }
            keys.add(key);
        }
        return List.copyOf(keys);
    }

    private ApiKey key(Map<?, ?> fields) {
        String name = text(fields, "name");
        String id = text(fields, "id");
        String hash = text(fields, "sha256");
        if (name == null || id == null || hash == null) {
            throw wrong("has a key without one of name, id, sha256");
        }
        checkName(name);
        if (!ID.matcher(id).matches() || !HASH.matcher(hash).matches()) {
            throw wrong("has a malformed id or sha256 at key '" + name + "'");
        }
        List<String> roles = new ArrayList<>();
        if (fields.get("roles") instanceof List<?> given) {
            given.forEach(role -> roles.add(String.valueOf(role)));
        }
        Instant created = instant(fields, "created", name);
        return new ApiKey(
                name,
                id,
                hash,
                roles,
                created == null ? Instant.EPOCH : created,
                instant(fields, "expires", name),
                instant(fields, "revoked", name));
    }

    private static @Nullable String text(Map<?, ?> fields, String field) {
        Object value = fields.get(field);
        return value == null ? null : String.valueOf(value);
    }

    private @Nullable Instant instant(Map<?, ?> fields, String field, String name) {
        String text = text(fields, field);
        if (text == null) {
            return null;
        }
        try {
            return Instant.parse(text);
        } catch (DateTimeParseException e) {
            throw wrong("has the time '" + text + "' in '" + field + "' of key '" + name
                    + "' (expected: a time such as 2026-12-31T00:00:00Z)");
        }
    }

    private ServingException wrong(String what) {
        return ServingException.invalidArgument("the file of API keys '" + file + "' " + what);
    }

    /** Replaces the keys by the result of {@code change}; one process at a time. */
    @SuppressWarnings("try") // the lock is held, not used
    public void update(UnaryOperator<List<ApiKey>> change) {
        Path lock = file.resolveSibling(file.getFileName() + ".lock");
        try {
            Path parent = file.toAbsolutePath().getParent();
            if (parent != null) {
                Files.createDirectories(parent);
            }
            try (FileChannel channel = FileChannel.open(lock, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                    FileLock held = channel.lock()) {
                replace(file, json(change.apply(read())));
            }
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION, "cannot write the API keys '" + file + "': " + e.getMessage(), e);
        }
    }

    private static String json(List<ApiKey> keys) {
        StringBuilder b = new StringBuilder("{\"keys\": [");
        String between = "\n";
        for (ApiKey key : keys) {
            b.append(between).append("  {\"name\": \"").append(key.name());
            b.append("\", \"id\": \"").append(key.id());
            b.append("\", \"sha256\": \"").append(key.hash()).append("\", \"roles\": [");
            for (int i = 0; i < key.roles().size(); i++) {
                b.append(i == 0 ? "\"" : ", \"").append(key.roles().get(i)).append('"');
            }
            b.append("], \"created\": \"").append(key.created()).append('"');
            if (key.expires() != null) {
                b.append(", \"expires\": \"").append(key.expires()).append('"');
            }
            if (key.revoked() != null) {
                b.append(", \"revoked\": \"").append(key.revoked()).append('"');
            }
            b.append('}');
            between = ",\n";
        }
        return b.append("\n]}\n").toString();
    }

    private static void replace(Path target, String content) throws IOException {
        Path next = target.resolveSibling(target.getFileName() + ".new");
        Files.deleteIfExists(next);
        Set<PosixFilePermission> owner = EnumSet.of(PosixFilePermission.OWNER_READ, PosixFilePermission.OWNER_WRITE);
        if (target.getFileSystem().supportedFileAttributeViews().contains("posix")) {
            Files.createFile(next, PosixFilePermissions.asFileAttribute(owner));
        }
        Files.writeString(next, content);
        Files.move(next, target, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
    }

    // ---- the times of last use

    private Path usePath() {
        return file.resolveSibling(file.getFileName() + ".last-used");
    }

    /** When keys were used last, by id; empty when it is not known. */
    public Map<String, Instant> lastUsed() {
        Map<String, Instant> times = new LinkedHashMap<>();
        try {
            for (String line : Files.readAllLines(usePath())) {
                String[] parts = line.split(" ", -1);
                if (parts.length == 2) {
                    times.put(parts[0], Instant.parse(parts[1]));
                }
            }
        } catch (IOException | DateTimeParseException e) {
            return Collections.unmodifiableMap(times);
        }
        return Collections.unmodifiableMap(times);
    }

    /** Writes the times of last use, together with those that the file has for other keys. */
    void writeLastUsed(Map<String, Instant> times) throws IOException {
        Map<String, Instant> all = new LinkedHashMap<>(lastUsed());
        times.forEach((id, time) -> all.merge(id, time, (a, b) -> a.isAfter(b) ? a : b));
        StringBuilder b = new StringBuilder();
        all.forEach((id, time) -> b.append(id).append(' ').append(time).append('\n'));
        replace(usePath(), b.toString());
    }
}
