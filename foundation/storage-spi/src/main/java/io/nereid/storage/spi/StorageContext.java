// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.spi;

/**
 * What a provider is given to open a URI. Immutable except for the token.
 *
 * @param uri the URI of the request; {@link #shownUri} is for messages
 * @param settings the settings of the request and of the server's environment, with credentials
 * @param retries timeouts, and how often a request is sent
 * @param cancel ends opening, listing and writing. Reads have a token of their own, because several fetches can share a
 *     download
 * @param hosts which hosts connections may reach
 */
public record StorageContext(
        String uri, StorageSettings settings, RetryPolicy retries, CancellationToken cancel, HostCheck hosts) {
    /** A context that permits every host. */
    public StorageContext(String uri, StorageSettings settings, RetryPolicy retries, CancellationToken cancel) {
        this(uri, settings, retries, cancel, HostCheck.ANY);
    }

    /** The URI without user, password and query, for messages and logs. */
    public String shownUri() {
        return StorageUri.shown(uri);
    }

    /** Makes exceptions of the store's failures. */
    public StorageFailures failures() {
        return new StorageFailures(settings, retries.attempts());
    }

    /** The URI without its secrets. */
    @Override
    public String toString() {
        return "StorageContext[" + shownUri() + ", " + settings + ", " + retries + "]";
    }
}
