// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.request;

import io.nereid.storage.Storage;
import io.nereid.storage.spi.StorageUri;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A request to download a model. Immutable.
 *
 * <pre>{@code
 * StorageRequest request = new StorageRequest(
 *         "hf://org/model:main", Map.of("HF_TOKEN", token), List.of("*.safetensors", "*.json"), List.of("*.bin"));
 * }</pre>
 *
 * @param uri the model's URI; {@link Storage#supports} checks whether a URI is supported
 * @param credentials settings in the key names of KServe's environment (AWS_ACCESS_KEY_ID, S3_ENDPOINT, HF_TOKEN,
 *     {@code {host}-headers} and so on); they override {@link StorageOptions#environment()}. Never shown by
 *     {@link #toString}. {@link StorageCredentials} makes them from Kubernetes secrets.
 * @param allow glob patterns ({@code *}, {@code ?}, {@code [seq]}, where {@code *} also matches a slash) of the paths
 *     to download; empty selects all
 * @param ignore glob patterns of the paths to leave out; they override {@code allow}
 */
public record StorageRequest(String uri, Map<String, String> credentials, List<String> allow, List<String> ignore) {
    /** Copies the collections. */
    public StorageRequest {
        credentials = Map.copyOf(credentials);
        allow = List.copyOf(allow);
        ignore = List.copyOf(ignore);
    }

    /** Everything below a URI, with the credentials of the server's environment. */
    public static StorageRequest of(String uri) {
        return new StorageRequest(uri, Map.of(), List.of(), List.of());
    }

    /** Everything below a URI, with credentials. */
    public static StorageRequest of(String uri, Map<String, String> credentials) {
        return new StorageRequest(uri, credentials, List.of(), List.of());
    }

    /** Compares the credentials too, which {@link #toString} hides. */
    @Override
    public boolean equals(@Nullable Object o) {
        return o instanceof StorageRequest r
                && uri.equals(r.uri)
                && credentials.equals(r.credentials)
                && allow.equals(r.allow)
                && ignore.equals(r.ignore);
    }

    @Override
    public int hashCode() {
        return uri.hashCode();
    }

    /** The URI without its secrets, and the names of the credentials without their values. */
    @Override
    public String toString() {
        return "StorageRequest[" + StorageUri.shown(uri) + ", credentials="
                + new java.util.TreeSet<>(credentials.keySet()) + ", allow=" + allow + ", ignore=" + ignore + "]";
    }
}
