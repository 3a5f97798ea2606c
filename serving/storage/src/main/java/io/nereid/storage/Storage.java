// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.storage.cache.CacheFileSystem;
import io.nereid.storage.cache.ContentCache;
import io.nereid.storage.credentials.TokenCache;
import io.nereid.storage.http.HttpClients;
import io.nereid.storage.object.ContentDigests;
import io.nereid.storage.object.GlobFilter;
import io.nereid.storage.provider.StorageProviders;
import io.nereid.storage.request.ProgressListener;
import io.nereid.storage.request.StorageCredentials;
import io.nereid.storage.request.StorageLease;
import io.nereid.storage.request.StorageOptions;
import io.nereid.storage.request.StorageRequest;
import io.nereid.storage.request.StorageUris;
import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.ObjectChangedException;
import io.nereid.storage.spi.ObjectSource;
import io.nereid.storage.spi.StorageProvider;
import io.nereid.storage.spi.StorageSettings;
import io.nereid.storage.spi.StorageUri;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The storage initializer: downloads models from object stores, registries and web servers into a content-addressed
 * cache on this machine, which all callers share. Thread-safe: listings and downloads run on threads of its own.
 *
 * <pre>{@code
 * try (Storage storage = new Storage(StorageOptions.defaults(Path.of("/var/cache/models")), Clock.system())) {
 *     storage.fetch(StorageRequest.of("s3://models/iris"), ProgressListener.none())
 *             .thenAccept(lease -> LOG.info("{} is in {}", lease.digest(), lease.path()));
 * }
 * }</pre>
 */
public final class Storage implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Storage.class);
    /** Attempts of a fetch whose objects change while they are downloaded. */
    private static final int CHANGES = 4;

    private static final int LISTERS = 8;

    private final StorageOptions options;
    private final HttpClients http;
    private final StorageProviders providers;
    private final SourceOpener sources;
    private final ContentCache cache;
    private final Download.DownloadContext context;
    private final LocalSource local;
    private final ExecutorService listers;
    private final ExecutorService downloaders;
    private final ExecutorService parts;

    private final Object lock = new Object();

    @GuardedBy("lock") private final Map<String, Job> jobs = new HashMap<>();

    private final CancellationToken writes = new CancellationToken();

    @GuardedBy("lock") private boolean closed;

    /**
     * Opens the cache and removes temporary files that an earlier process left behind.
     *
     * @throws ServingException FAILED_PRECONDITION if another process uses the cache, INTERNAL if it cannot be created
     */
    public Storage(StorageOptions options, Clock clock) {
        this(options, clock, List.of());
    }

    /**
     * As {@link #Storage(StorageOptions, Clock)}, with providers of plugins.
     *
     * @param plugins each replaces the built-in provider of its schemes
     * @throws ServingException also FAILED_PRECONDITION when two plugins have a scheme in common
     */
    public Storage(StorageOptions options, Clock clock, List<StorageProvider> plugins) {
        this(options, clock, plugins, new CacheFileSystem());
    }

    public Storage(StorageOptions options, Clock clock, List<StorageProvider> plugins, CacheFileSystem disk) {
        this.options = options;
        Map<String, StorageProvider> byScheme = StorageProviders.byScheme(plugins);
        this.cache = new ContentCache(options, clock, disk);
        this.http = new HttpClients(options, clock);
        this.providers = new StorageProviders(http, new TokenCache(clock), byScheme);
        this.sources = new SourceOpener(providers, options);
        this.listers = Threads.pool("storage-list", LISTERS);
        this.downloaders = Threads.pool("storage-fetch", options.downloads());
        this.parts = Threads.pool("storage-part", options.connections());
        this.context = new Download.DownloadContext(cache, disk, parts, options, clock);
        this.local = new LocalSource(context, true);
    }

    /** Whether a URI is valid and its kind of store is supported without plugins. */
    public static boolean supports(String uri) {
        try {
            check(uri);
            return true;
        } catch (ServingException e) {
            return false;
        }
    }

    /**
     * Rejects an invalid URI, and one whose kind of store is not supported without plugins.
     *
     * @throws ServingException INVALID_ARGUMENT with the supported forms
     */
    public static void check(String uri) {
        StorageUris.kind(uri);
    }

    /**
     * Downloads the objects that a URI names, or takes them from the cache. Each call lists the store, so a cached copy
     * is used only while the store's content is unchanged. Concurrent requests for the same content share one download.
     * Cancelling the future of the stage ({@code toCompletableFuture().cancel(true)}) stops the fetch; the parts
     * downloaded so far are kept for the next attempt.
     *
     * @return a lease, which the caller closes. Fails with a ServingException: INVALID_ARGUMENT (URI, settings, an
     *     unsafe archive), NOT_FOUND, UNAUTHENTICATED and PERMISSION_DENIED (from the store), UNAVAILABLE (the store
     *     cannot be reached), RESOURCE_EXHAUSTED (disk or quota), DATA_LOSS (a checksum does not match),
     *     FAILED_PRECONDITION
     */
    public CompletionStage<StorageLease> fetch(StorageRequest request, ProgressListener progress) {
        Waiter waiter = new Waiter(request, progress);
        var unused = waiter.result.whenComplete((stored, e) -> {
            if (waiter.result.isCancelled()) {
                waiter.cancel();
            }
        });
        begin(waiter);
        return waiter.result;
    }

    /**
     * Returns a writer of objects below a URI. The first request to the store is sent by the first {@link Bucket#put}.
     *
     * @param uri {@code s3://bucket/prefix}, {@code gs://bucket/prefix},
     *     {@code abfss://container@account.dfs.core.windows.net/prefix} (or {@code abfs://}), or the https URL of an
     *     Azure blob container; the prefix is prepended to all keys
     * @param credentials settings like {@link StorageRequest#credentials()}, read at each write, so that they may
     *     change; {@link StorageCredentials#writing} makes them from secrets. They override
     *     {@link StorageOptions#environment()}
     * @throws ServingException INVALID_ARGUMENT for a URI that cannot be written to
     */
    public Bucket bucket(String uri, Supplier<Map<String, String>> credentials) {
        options.access().check(uri);
        return new Bucket(uri, credentials, providers, writes);
    }

    private void begin(Waiter waiter) {
        try {
            listers.execute(() -> {
                try {
                    find(waiter);
                } catch (Throwable t) {
                    waiter.fail(t);
                }
            });
        } catch (RejectedExecutionException e) {
            waiter.fail(ServingException.of(ErrorCode.CANCELLED, "the storage is closed"));
        }
    }

    private void find(Waiter waiter) {
        StorageRequest request = waiter.request;
        String uri = request.uri();
        StorageUris.Kind kind = providers.isPlugin(uri) ? null : StorageUris.kind(uri);
        options.access().check(uri);
        StorageSettings settings = providers.settings(request.credentials());
        GlobFilter patterns = SourceOpener.patterns(request, settings);
        if (kind == StorageUris.Kind.FILE || kind == StorageUris.Kind.PVC) {
            Path path = LocalSource.resolve(uri, kind, options.pvcRoot());
            options.access().checkPath(uri, path);
            StorageLease stored = local.open(uri, path, patterns, waiter.cancel);
            waiter.progress.on(
                    new ProgressListener.Step(ProgressListener.Phase.DONE, stored.bytes(), stored.bytes(), 0, 0));
            waiter.complete(stored);
            return;
        }
        waiter.progress.on(new ProgressListener.Step(ProgressListener.Phase.LISTING, 0, -1, 0, -1));
        String last = "last-" + ContentDigests.sha256(uri + "\n" + patterns + "\n" + settings.identity());
        try {
            list(waiter, patterns, last, settings);
        } catch (ServingException e) {
            if (e.code() != ErrorCode.UNAVAILABLE || !options.useStale()) {
                throw e;
            }
            StorageLease stale = cache.find(last, false).orElseThrow(() -> e);
            LOG.warn("{}; the copy of the last successful fetch is used", e.getMessage());
            waiter.complete(stale);
        }
    }

    private void list(Waiter waiter, GlobFilter patterns, String last, StorageSettings settings) {
        SourceOpener.Opened opened = sources.open(waiter.request.uri(), patterns, settings, waiter.cancel);
        boolean joined = false;
        try {
            joined = join(waiter, opened, patterns, last, settings);
        } finally {
            if (!joined) {
                opened.close();
            }
        }
    }

    /** Returns whether a new job took the source. */
    private boolean join(
            Waiter waiter, SourceOpener.Opened opened, GlobFilter patterns, String last, StorageSettings settings) {
        ObjectSource.Listing listing = opened.listing();
        String key = SourceOpener.key(listing, patterns, settings);
        synchronized (lock) {
            if (closed) {
                throw ServingException.of(ErrorCode.CANCELLED, "the storage is closed");
            }
            if (waiter.cancel.cancelled()) {
                return false;
            }
            Job job = jobs.get(key);
            if (job != null) {
                job.join(waiter, last);
                return false;
            }
            if (listing.versioned()) {
                StorageLease known = cache.find(key, true).orElse(null);
                if (known != null) {
                    cache.remember(last, known.digest());
                    waiter.progress.on(new ProgressListener.Step(
                            ProgressListener.Phase.DONE,
                            known.bytes(),
                            known.bytes(),
                            listing.items().size(),
                            listing.items().size()));
                    waiter.complete(known);
                    return false;
                }
            }
            Job fresh = new Job(key, opened, patterns, StorageUri.shown(waiter.request.uri()));
            fresh.join(waiter, last);
            jobs.put(key, fresh);
            try {
                downloaders.execute(fresh);
            } catch (RejectedExecutionException e) {
                jobs.remove(key);
                throw ServingException.of(ErrorCode.CANCELLED, "the storage is closed");
            }
            return true;
        }
    }

    /**
     * Cancels running fetches and writes. The paths of open leases stay readable but are no longer protected from
     * eviction.
     */
    @Override
    public void close() {
        List<Job> running;
        synchronized (lock) {
            closed = true;
            running = new ArrayList<>(jobs.values());
        }
        running.forEach(job -> job.cancel.cancel());
        writes.cancel();
        listers.shutdown();
        downloaders.shutdown();
        try {
            if (!downloaders.awaitTermination(10, java.util.concurrent.TimeUnit.SECONDS)) {
                LOG.warn("downloads did not stop within 10 seconds");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        parts.shutdown();
        http.close();
        cache.close();
    }

    /** Bytes that the cache holds. */
    public long held() {
        return cache.held();
    }

    /** A caller's pending fetch. Thread-safe. */
    private final class Waiter {
        final StorageRequest request;
        final ProgressListener progress;
        final CompletableFuture<StorageLease> result = new CompletableFuture<>();
        final CancellationToken cancel = new CancellationToken();
        private int changes;

        Waiter(StorageRequest request, ProgressListener progress) {
            this.request = request;
            this.progress = progress;
        }

        void cancel() {
            cancel.cancel();
            List<Job> running;
            synchronized (lock) {
                running = new ArrayList<>(jobs.values());
            }
            running.forEach(job -> job.leave(this));
        }

        void complete(StorageLease stored) {
            if (!result.complete(stored)) {
                stored.close();
            }
        }

        void fail(Throwable t) {
            if (t instanceof ObjectChangedException && ++changes < CHANGES && !cancel.cancelled()) {
                begin(this);
                return;
            }
            if (t instanceof ObjectChangedException) {
                result.completeExceptionally(ServingException.of(
                        ErrorCode.ABORTED,
                        StorageUri.shown(request.uri()) + " keeps changing while it is downloaded",
                        "try again when the upload is complete"));
                return;
            }
            if (!(t instanceof ServingException)) {
                LOG.error("fetching {}", StorageUri.shown(request.uri()), t);
            }
            result.completeExceptionally(ServingException.from(t));
        }
    }

    /** A download shared by all fetches of the same content. Thread-safe: guarded by the storage's lock. */
    private final class Job implements Runnable {
        private final String key;
        private final SourceOpener.Opened opened;
        private final ObjectSource.Listing listing;
        private final GlobFilter patterns;
        private final String uri;
        final CancellationToken cancel = new CancellationToken();

        @GuardedBy("Storage.this.lock") private final Map<Waiter, String> waiters = new HashMap<>();

        @GuardedBy("Storage.this.lock") private final List<Waiter> late = new ArrayList<>();

        Job(String key, SourceOpener.Opened opened, GlobFilter patterns, String uri) {
            this.key = key;
            this.opened = opened;
            this.listing = opened.listing();
            this.patterns = patterns;
            this.uri = uri;
        }

        void join(Waiter waiter, String last) {
            synchronized (lock) {
                if (cancel.cancelled()) {
                    // Two downloads must not write the same partial files, so this fetch restarts after the cancelled
                    // job.
                    late.add(waiter);
                } else {
                    waiters.put(waiter, last);
                }
            }
        }

        void leave(Waiter waiter) {
            synchronized (lock) {
                if (waiters.remove(waiter) == null || !waiters.isEmpty()) {
                    return;
                }
            }
            cancel.cancel();
        }

        @Override
        public void run() {
            try {
                transfer();
            } finally {
                opened.close();
            }
        }

        private void transfer() {
            StorageLease stored;
            try {
                stored = downloadOrRestart();
            } catch (Throwable t) {
                leaveJobs().keySet().forEach(waiter -> waiter.fail(t));
                return;
            }
            try (stored) {
                if (listing.versioned()) {
                    cache.remember(key, stored.digest());
                }
                leaveJobs().forEach((waiter, last) -> {
                    cache.remember(last, stored.digest());
                    waiter.complete(cache.again(stored, true));
                });
            }
        }

        private StorageLease downloadOrRestart() {
            try {
                return download(listing, key);
            } catch (Download.WholeObjectsOnlyException e) {
                LOG.info("{}: the store ignores range requests; every object is downloaded with one request", uri);
                return download(SourceOpener.withoutRanges(listing), key);
            }
        }

        private StorageLease download(ObjectSource.Listing what, String directory) {
            return new Download(
                            context,
                            opened.context(),
                            what,
                            patterns,
                            directory,
                            uri,
                            opened.reads(),
                            cancel,
                            this::report)
                    .run();
        }

        private void report(ProgressListener.Step step) {
            List<Waiter> now;
            synchronized (lock) {
                now = new ArrayList<>(waiters.keySet());
            }
            now.forEach(waiter -> waiter.progress.on(step));
        }

        private Map<Waiter, String> leaveJobs() {
            synchronized (lock) {
                jobs.remove(key, this);
                Map<Waiter, String> waiting = new HashMap<>(waiters);
                waiters.clear();
                late.forEach(Storage.this::begin);
                late.clear();
                return waiting;
            }
        }
    }
}
