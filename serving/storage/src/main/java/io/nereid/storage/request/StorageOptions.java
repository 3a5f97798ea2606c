// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.request;

import io.nereid.storage.Storage;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Options of a {@link Storage}. Immutable; make variants with the {@code with} methods.
 *
 * <pre>{@code
 * StorageOptions options = StorageOptions.defaults(Path.of("/var/cache/models"))
 *         .withQuota(50L << 30, 1L << 30)
 *         .withEnvironment(System.getenv());
 * }</pre>
 *
 * @param cache the directory of the cache, created if absent; only one storage of one process may use it at a time
 * @param quotaBytes maximum size of the cache, including partial downloads
 * @param keepFreeBytes minimum free space to leave on the cache's disk
 * @param pvcRoot the directory whose sub-directories are the persistent volume claims of {@code pvc://name/path}, or
 *     null
 * @param environment default settings of every request, usually the process's environment;
 *     {@link StorageRequest#credentials()} override them
 * @param connections maximum number of concurrent download connections
 * @param downloads maximum number of concurrent downloads; others wait
 * @param attempts how often a request to a store is sent before it fails, including the first time
 * @param connectTimeout timeout for establishing a connection
 * @param readTimeout timeout until a response begins, and between two arrivals of bytes
 * @param useStale whether to use the last fetched copy, of the same credentials, when the store cannot be reached
 * @param limits limits for archives
 * @param access which URIs requests may name, and which addresses connections may reach
 */
public record StorageOptions(
        Path cache,
        long quotaBytes,
        long keepFreeBytes,
        @Nullable Path pvcRoot,
        Map<String, String> environment,
        int connections,
        int downloads,
        int attempts,
        Duration connectTimeout,
        Duration readTimeout,
        boolean useStale,
        Limits limits,
        StorageAccess access) {

    /**
     * Limits for archives, against decompression bombs. Immutable.
     *
     * @param entries maximum number of files, directories and links
     * @param bytes maximum number of unpacked bytes
     * @param ratio maximum number of unpacked bytes per packed byte, checked once 64 MiB are unpacked
     */
    public record Limits(int entries, long bytes, int ratio) {
        /** 100,000 entries, 1 TiB, 300 to one. */
        public static Limits defaults() {
            return new Limits(100_000, 1L << 40, 300);
        }
    }

    /** Copies the environment and validates the numbers. */
    public StorageOptions {
        environment = Map.copyOf(environment);
        if (quotaBytes <= 0 || keepFreeBytes < 0 || connections < 1 || downloads < 1 || attempts < 1) {
            throw new IllegalArgumentException("quotaBytes, connections, downloads and attempts are at least 1");
        }
    }

    /** The defaults: a quota of 100 GiB, 1 GiB left free, 8 connections, 4 downloads, 5 attempts, 15 s and 30 s. */
    public static StorageOptions defaults(Path cache) {
        return new Draft(cache).options();
    }

    /** With another quota. */
    public StorageOptions withQuota(long bytes, long keepFree) {
        Draft draft = new Draft(this);
        draft.quotaBytes = bytes;
        draft.keepFreeBytes = keepFree;
        return draft.options();
    }

    /** With a directory of persistent volume claims. */
    public StorageOptions withPvcRoot(Path root) {
        Draft draft = new Draft(this);
        draft.pvcRoot = root;
        return draft.options();
    }

    /** With another environment. */
    public StorageOptions withEnvironment(Map<String, String> settings) {
        Draft draft = new Draft(this);
        draft.environment = settings;
        return draft.options();
    }

    /** With another number of attempts and other timeouts. */
    public StorageOptions withRetries(int most, Duration connect, Duration read) {
        Draft draft = new Draft(this);
        draft.attempts = most;
        draft.connectTimeout = connect;
        draft.readTimeout = read;
        return draft.options();
    }

    /** With or without the use of stale copies. */
    public StorageOptions withStale(boolean use) {
        Draft draft = new Draft(this);
        draft.useStale = use;
        return draft.options();
    }

    /** With other limits for archives. */
    public StorageOptions withLimits(Limits other) {
        Draft draft = new Draft(this);
        draft.limits = other;
        return draft.options();
    }

    /** With a restriction of URIs and addresses, for requests that come through an API. */
    public StorageOptions withAccess(StorageAccess to) {
        Draft draft = new Draft(this);
        draft.access = to;
        return draft.options();
    }

    /** All options except the environment, whose values may be secrets. */
    @Override
    public String toString() {
        return "StorageOptions[cache=" + cache + ", quotaBytes=" + quotaBytes + ", keepFreeBytes=" + keepFreeBytes
                + ", pvcRoot=" + pvcRoot + ", connections=" + connections + ", downloads=" + downloads + ", attempts="
                + attempts + ", connectTimeout=" + connectTimeout + ", readTimeout=" + readTimeout + ", useStale="
                + useStale + ", limits=" + limits + ", access=" + access + "]";
    }

    /** Mutable builder of options. Confined to one thread. */
    private static final class Draft {
        private final Path cache;
        private long quotaBytes = 100L << 30;
        private long keepFreeBytes = 1L << 30;
        private @Nullable Path pvcRoot;
        private Map<String, String> environment = Map.of();
        private int connections = 8;
        private int downloads = 4;
        private int attempts = 5;
        private Duration connectTimeout = Duration.ofSeconds(15);
        private Duration readTimeout = Duration.ofSeconds(30);
        private boolean useStale = true;
        private Limits limits = Limits.defaults();
        private StorageAccess access = StorageAccess.UNRESTRICTED;

        Draft(Path cache) {
            this.cache = cache;
        }

        Draft(StorageOptions from) {
            cache = from.cache;
            quotaBytes = from.quotaBytes;
            keepFreeBytes = from.keepFreeBytes;
            pvcRoot = from.pvcRoot;
            environment = from.environment;
            connections = from.connections;
            downloads = from.downloads;
            attempts = from.attempts;
            connectTimeout = from.connectTimeout;
            readTimeout = from.readTimeout;
            useStale = from.useStale;
            limits = from.limits;
            access = from.access;
        }

        StorageOptions options() {
            return new StorageOptions(
                    cache,
                    quotaBytes,
                    keepFreeBytes,
                    pvcRoot,
                    environment,
                    connections,
                    downloads,
                    attempts,
                    connectTimeout,
                    readTimeout,
                    useStale,
                    limits,
                    access);
        }
    }
}
