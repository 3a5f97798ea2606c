// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.spi;

import io.nereid.base.ServingException;
import java.util.Set;

/**
 * A kind of store. Providers are found through {@link java.util.ServiceLoader} in the jars of plugins; an installed
 * provider replaces the built-in one of the same scheme. The server does the rest of a fetch: it checks paths, selects by
 * patterns, downloads in parallel, repeats failed reads, verifies checksums, unpacks archives and caches the result.
 * Thread-safe; has a public constructor without arguments.
 *
 * <pre>{@code
 * public final class FtpProvider implements StorageProvider {
 *     public String name() { return "ftp"; }
 *     public Set<String> schemes() { return Set.of("ftp"); }
 *     public ObjectSource open(StorageContext context) { return new FtpSource(context); }
 * }
 * }</pre>
 */
public interface StorageProvider {
    /** The name for messages and lists, such as {@code s3}. */
    String name();

    /** The schemes of the provider's URIs, in lower case and without {@code ://}. */
    Set<String> schemes();

    /**
     * Whether the provider is for a URI with one of its schemes: several providers can share {@code https}, each for some
     * hosts.
     */
    default boolean accepts(String uri) {
        return true;
    }

    /** The settings that hold identities and endpoints of this kind of store. */
    default IdentitySettings identitySettings() {
        return IdentitySettings.NONE;
    }

    /**
     * Timeouts and attempts of a fetch.
     *
     * @param server those of the server's options, which settings of the store may override
     */
    default RetryPolicy retries(StorageSettings settings, RetryPolicy server) {
        return server;
    }

    /**
     * Opens the source of a URI for one fetch; the server closes it. May block, but need not reach the store.
     *
     * @throws ServingException INVALID_ARGUMENT for an invalid URI or setting; FAILED_PRECONDITION for credentials that
     *     cannot be used
     */
    ObjectSource open(StorageContext context);

    /**
     * Opens a target that writes objects below a URI.
     *
     * @throws ServingException INVALID_ARGUMENT for an invalid URI or setting, and for a kind of store that is not
     *     written to
     */
    default UploadTarget upload(StorageContext context) {
        throw ServingException.invalidArgument(
                "'" + context.shownUri() + "' cannot be written to: the storage provider '" + name() + "' only reads",
                "name another kind of store");
    }
}
