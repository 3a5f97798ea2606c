// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.connection;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.text.YamlWriter;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.yaml.ManifestReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The tokens that {@code nereid login} has stored, by server. Only the file's owner can read it. Stateless but for the
 * path.
 *
 * <pre>{@code
 * servers:
 * - url: https://models.example.com:443
 *   token: …
 *   certificateAuthority: /etc/ssl/models-ca.pem
 * }</pre>
 */
public final class CredentialsFile {
    private final Path file;

    /** The tokens in a file, which need not exist yet. */
    public CredentialsFile(Path file) {
        this.file = file;
    }

    /**
     * What is stored for a server.
     *
     * @param certificateAuthority the file of the authority of its certificate; null for those of the Java runtime
     */
    public record Entry(String token, @Nullable String certificateAuthority) {
        /** Without the token. */
        @Override
        public String toString() {
            return "Entry[certificateAuthority=" + certificateAuthority + "]";
        }
    }

    /** {@code $XDG_CONFIG_HOME/nereid/credentials.yaml} or {@code ~/.config/nereid/credentials.yaml}. */
    public static Path defaultPath(Map<String, String> environment) {
        String config = environment.getOrDefault("XDG_CONFIG_HOME", "");
        String home = environment.getOrDefault("HOME", "");
        Path root = config.startsWith("/")
                ? Path.of(config)
                : Path.of(home.startsWith("/") ? home : System.getProperty("user.home"), ".config");
        return root.resolve("nereid").resolve("credentials.yaml");
    }

    /** The file. */
    public Path path() {
        return file;
    }

    /** What is stored for a server; null for nothing. */
    public @Nullable Entry find(ServerAddress server) {
        return read().get(server.origin());
    }

    /** The servers for which a token is stored. */
    public List<String> servers() {
        return List.copyOf(read().keySet());
    }

    /** Stores the token of a server, in place of another one. */
    public void put(ServerAddress server, Entry entry) {
        Map<String, Entry> all = read();
        all.put(server.origin(), entry);
        write(all);
    }

    /** Removes the token of a server; false when there is none. */
    public boolean remove(ServerAddress server) {
        Map<String, Entry> all = read();
        boolean found = all.remove(server.origin()) != null;
        if (found) {
            write(all);
        }
        return found;
    }

    private Map<String, Entry> read() {
        Map<String, Entry> all = new LinkedHashMap<>();
        List<ObjectNode> documents;
        try {
            documents = ManifestReader.parse(Files.readString(file), "'" + file + "'");
        } catch (NoSuchFileException e) {
            return all;
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "cannot read the credentials '" + file + "': " + e.getMessage(),
                    "check the owner and the mode of the file",
                    e);
        }
        for (ObjectNode document : documents) {
            for (JsonNode server : document.path("servers")) {
                String url = server.path("url").asText("");
                String token = server.path("token").asText("");
                if (url.isEmpty() || token.isEmpty()) {
                    throw ServingException.of(
                            ErrorCode.FAILED_PRECONDITION,
                            "the credentials '" + file + "' have a server without 'url' or 'token'",
                            "remove the entry, and log in again: nereid login URL");
                }
                JsonNode authority = server.get("certificateAuthority");
                all.put(
                        ServerAddress.of(url).origin(),
                        new Entry(token, authority == null ? null : authority.asText()));
            }
        }
        return all;
    }

    private void write(Map<String, Entry> all) {
        ObjectNode tree = JsonNodeFactory.instance.objectNode();
        ArrayNode servers = tree.putArray("servers");
        all.forEach((url, entry) -> {
            ObjectNode server = servers.addObject();
            server.put("url", url).put("token", entry.token());
            if (entry.certificateAuthority() != null) {
                server.put("certificateAuthority", entry.certificateAuthority());
            }
        });
        OwnerOnlyFile.write(file, YamlWriter.of(tree));
    }
}
