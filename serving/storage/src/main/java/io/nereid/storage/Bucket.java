// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import io.nereid.base.ServingException;
import io.nereid.storage.http.HttpCall;
import io.nereid.storage.provider.StorageProviders;
import io.nereid.storage.request.StorageUris;
import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.StorageContext;
import io.nereid.storage.spi.StorageProvider;
import io.nereid.storage.spi.StorageUri;
import io.nereid.storage.spi.UploadTarget;
import java.util.Locale;
import java.util.Map;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Writes objects to a bucket, below a prefix; see {@link Storage#bucket}. Thread-safe: the resolved target is immutable
 * and replaced as a whole when the credentials change.
 *
 * <pre>{@code
 * Bucket bucket = storage.bucket("s3://logs/iris", () -> credentials);
 * bucket.put("2026/07/01/request.json", bytes);
 * }</pre>
 */
public final class Bucket {
    private static final Pattern AZURE = Pattern.compile(
            "abfss?://([^/@]+)@([a-z0-9-]+)(?:\\.(?:dfs|blob)\\.([a-z0-9.]+))?(/[^?]*)?", Pattern.DOTALL);

    private final String uri;
    private final Supplier<Map<String, String>> credentials;
    private final StorageProviders providers;
    private final CancellationToken cancel;
    private volatile @Nullable Resolved last;

    private record Resolved(Map<String, String> credentials, UploadTarget target) {}

    Bucket(
            String uri,
            Supplier<Map<String, String>> credentials,
            StorageProviders providers,
            CancellationToken cancel) {
        this.uri = providers.isPlugin(uri) ? uri : readable(uri);
        this.credentials = credentials;
        this.providers = providers;
        this.cancel = cancel;
    }

    /**
     * Converts the URI to the form that downloads use; {@code abfs[s]://} becomes the https URL of the blob container.
     */
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
                    "'" + StorageUri.shown(uri) + "' cannot be written to: it does not name a container and an account",
                    "write it as abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/path");
        }
        StorageUris.Kind kind = StorageUris.kind(known);
        if (kind != StorageUris.Kind.S3 && kind != StorageUris.Kind.GCS && kind != StorageUris.Kind.AZURE) {
            throw ServingException.invalidArgument(
                    "'" + StorageUri.shown(uri) + "' cannot be written to",
                    "supported are s3://bucket/path, gs://bucket/path and "
                            + "abfss://container@account.dfs.core.windows.net/path");
        }
        return known;
    }

    /**
     * Writes an object, or replaces the one with the same key, with one request, without retries. Readers see either
     * the old or the whole new object. Blocks the calling thread. The content type follows from the key's extension.
     *
     * @param key below the URI's path, segments separated by slashes, not encoded
     * @throws ServingException UNAVAILABLE when a retry may succeed; UNAUTHENTICATED, PERMISSION_DENIED, NOT_FOUND (the
     *     bucket does not exist) and others as the store reports; INVALID_ARGUMENT for invalid settings; CANCELLED when
     *     the storage is closed; and the exceptions of the credentials' supplier
     */
    public void put(String key, byte[] bytes) {
        Map<String, String> now = credentials.get();
        Resolved known = last;
        if (known == null || !known.credentials().equals(now)) {
            StorageProvider provider = providers.of(uri);
            StorageContext context = providers.context(provider, uri, providers.settings(now), cancel);
            known = new Resolved(Map.copyOf(now), provider.upload(context));
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

    /** The URI, without secrets. */
    @Override
    public String toString() {
        return "Bucket[" + StorageUri.shown(uri) + "]";
    }
}
