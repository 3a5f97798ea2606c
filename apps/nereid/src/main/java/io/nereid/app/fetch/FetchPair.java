// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.fetch;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.base.ServingException;
import io.nereid.storage.spi.StorageUri;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * A source and the directory that it is fetched into. Immutable.
 *
 * @param uri of the source
 * @param directory absolute, without dot segments
 */
record FetchPair(String uri, Path directory) {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final String USUAL_DIRECTORY = "/mnt/models";

    /**
     * Reads the arguments {@code SRC DEST [SRC DEST ...]}.
     *
     * @throws ServingException INVALID_ARGUMENT
     */
    static List<FetchPair> ofArguments(List<String> arguments) {
        if (arguments.size() % 2 != 0) {
            throw ServingException.invalidArgument(
                    "'" + StorageUri.shown(arguments.get(arguments.size() - 1)) + "' has no directory beside it",
                    "give pairs of a source and a directory: nereid fetch SRC DEST [SRC DEST ...]");
        }
        List<FetchPair> pairs = new ArrayList<>();
        for (int i = 0; i < arguments.size(); i += 2) {
            pairs.add(of(arguments.get(i), arguments.get(i + 1)));
        }
        return pairs;
    }

    /**
     * Reads {@code storageUris} as an InferenceService has them: a JSON array of objects with {@code uri} and
     * {@code mountPath}, or an object whose {@code storageUris} is one.
     *
     * @param textOrFile JSON, or the path of a file with it
     * @throws ServingException INVALID_ARGUMENT
     */
    static List<FetchPair> ofStorageUris(String textOrFile) {
        boolean inline = textOrFile.stripLeading().startsWith("[")
                || textOrFile.stripLeading().startsWith("{");
        String where = inline ? "--storage-uris" : "--storage-uris " + textOrFile;
        JsonNode tree;
        try {
            tree = MAPPER.readTree(inline ? textOrFile : Files.readString(Path.of(textOrFile)));
        } catch (JsonProcessingException e) {
            throw ServingException.invalidArgument(
                    where + " is not valid JSON",
                    "write [{\"uri\": \"s3://models/iris\", \"mountPath\": \"/mnt/models\"}]");
        } catch (IOException | InvalidPathException e) {
            throw ServingException.invalidArgument(where + " cannot be read: " + e.getMessage());
        }
        JsonNode list = tree.isObject() ? tree.path("storageUris") : tree;
        if (!list.isArray() || list.isEmpty()) {
            throw ServingException.invalidArgument(
                    where + " is not a list of objects with uri and mountPath",
                    "write [{\"uri\": \"s3://models/iris\", \"mountPath\": \"/mnt/models\"}]");
        }
        List<FetchPair> pairs = new ArrayList<>();
        for (JsonNode entry : list) {
            entry.fieldNames().forEachRemaining(name -> {
                if (!name.equals("uri") && !name.equals("mountPath")) {
                    throw ServingException.invalidArgument(
                            where + " has the unknown field '" + name + "'", "known are uri and mountPath");
                }
            });
            if (entry.path("uri").asText().isEmpty()) {
                throw ServingException.invalidArgument(where + " has an entry without a uri");
            }
            String mount = entry.path("mountPath").asText(USUAL_DIRECTORY);
            if (!mount.startsWith("/")
                    || mount.equals("/")
                    || List.of(mount.split("/")).contains("..")) {
                throw ServingException.invalidArgument(where + " has the mountPath '" + mount
                        + "' (expected: an absolute path other than /, without ..)");
            }
            pairs.add(of(entry.path("uri").asText(), mount));
        }
        return pairs;
    }

    private static FetchPair of(String uri, String directory) {
        if (uri.isBlank() || directory.isBlank()) {
            throw ServingException.invalidArgument(
                    "a " + (uri.isBlank() ? "source" : "directory") + " is empty",
                    "give pairs of a source and a directory: nereid fetch SRC DEST [SRC DEST ...]");
        }
        Path path;
        try {
            path = Path.of(directory).toAbsolutePath().normalize();
        } catch (InvalidPathException e) {
            throw ServingException.invalidArgument("'" + directory + "' is not the path of a directory");
        }
        if (path.getParent() == null) {
            throw ServingException.invalidArgument(
                    "the directory for " + StorageUri.shown(uri) + " is " + directory + ", the root of the file system",
                    "name a directory below it, such as " + USUAL_DIRECTORY);
        }
        return new FetchPair(uri, path);
    }

    @Override
    public String toString() {
        return StorageUri.shown(uri) + " into " + directory;
    }
}
