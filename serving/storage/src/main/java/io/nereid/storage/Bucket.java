// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import io.nereid.base.ServingException;
import java.util.Locale;
import java.util.Map;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A place in an object store that objects are written to; see {@link Storage#bucket}. Thread-safe: what was resolved last is
 * replaced as a whole.
 */
public final class Bucket {
    private static final Pattern AZURE = Pattern.compile(
            "abfss?://([^/@]+)@([a-z0-9-]+)(?:\\.(?:dfs|blob)\\.([a-z0-9.]+))?(/[^?]*)?", Pattern.DOTALL);

    private final String uri;
    private final Supplier<Map<String, String>> credentials;
    private final Map<String, String> environment;
    private final Sources sources;
    private final Cancel cancel;
    private volatile @Nullable Resolved last;

    private record Resolved(Map<String, String> credentials, Target target) {}

    Bucket(
            String uri,
            Supplier<Map<String, String>> credentials,
            Map<String, String> environment,
            Sources sources,
            Cancel cancel) {
        this.uri = readable(uri);
        this.credentials = credentials;
        this.environment = environment;
        this.sources = sources;
        this.cancel = cancel;
    }

    /** The URI as downloads know it. */
    static String readable(String uri) {
        Matcher azure = AZURE.matcher(uri);
        String known = uri;
        if (azure.matches()) {
            String suffix = azure.group(3) == null ? "core.windows.net" : azure.group(3);
            String path = azure.group(4) == null ? "" : azure.group(4);
            known = "https://" + azure.group(2) + ".blob." + suffix + "/" + HttpCall.encode(azure.group(1), false)
                    + HttpCall.encode(path, true);
        } else if (uri.startsWith("abfs")) {
            throw ServingException.invalidArgument(
                    "'" + Uris.shown(uri) + "' cannot be written to: it names no container of an account",
                    "write it as abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/path");
        }
        Uris.Kind kind = Uris.kind(known);
        if (kind != Uris.Kind.S3 && kind != Uris.Kind.GCS && kind != Uris.Kind.AZURE) {
            throw ServingException.invalidArgument(
                    "'" + Uris.shown(uri) + "' cannot be written to",
                    "what can be is s3://bucket/path, gs://bucket/path and "
                            + "abfss://container@account.dfs.core.windows.net/path");
        }
        return known;
    }

    /**
     * Writes an object in the place of what has its name, in one request that is sent once; whoever reads sees all of it or
     * none. The calling thread waits. The type of its content follows from the key's extension.
     *
     * @param key below the URI's path, segments separated by slashes, not encoded
     * @throws ServingException UNAVAILABLE when the same may work later; UNAUTHENTICATED, PERMISSION_DENIED, NOT_FOUND (there
     *     is no such bucket) and others as the store said; INVALID_ARGUMENT for settings that are wrong; CANCELLED when the
     *     storage is closed; and what the credentials' supplier throws
     */
    public void put(String key, byte[] bytes) {
        Map<String, String> now = credentials.get();
        Resolved known = last;
        if (known == null || !known.credentials().equals(now)) {
            known = new Resolved(Map.copyOf(now), sources.target(uri, Settings.of(now, environment), cancel));
            last = known;
        }
        known.target().put(key, type(key), bytes);
    }

    private static String type(String key) {
        return switch (key.substring(key.lastIndexOf('.') + 1).toLowerCase(Locale.ROOT)) {
            case "json" -> "application/json";
            case "csv" -> "text/csv";
            case "txt" -> "text/plain";
            case "parquet" -> "application/vnd.apache.parquet";
            default -> "application/octet-stream";
        };
    }

    /** The place, without secrets. */
    @Override
    public String toString() {
        return "Bucket[" + Uris.shown(uri) + "]";
    }
}
