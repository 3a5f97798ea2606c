// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import io.nereid.base.Clock;
import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
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
 * Brings models from where they are stored to a cache on this machine, which all share. Thread-safe; the work is done on
 * threads of its own.
 */
public final class Storage implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Storage.class);
    private static final int CHANGES = 4;
    private static final int LISTERS = 8;

    private final StorageOptions options;
    private final Http http;
    private final Sources sources;
    private final Download.Shop shop;
    private final Local local;
    private final ExecutorService listers;
    private final ExecutorService downloaders;
    private final ExecutorService parts;

    private final Object lock = new Object();
    private final Map<String, Job> jobs = new HashMap<>();
    private final Cancel writes = new Cancel();
    private boolean closed;

    /**
     * Opens the cache, clearing what an earlier process left behind half done.
     *
     * @throws ServingException FAILED_PRECONDITION if another process uses the cache, INTERNAL if it cannot be made
     */
    public Storage(StorageOptions options, Clock clock) {
        this(options, clock, new Disk());
    }

    Storage(StorageOptions options, Clock clock, Disk disk) {
        this.options = options;
        Cache cache = new Cache(options, clock, disk);
        this.http = new Http(options, clock);
        this.sources = new Sources(http, new Tokens(clock));
        this.listers = Threads.pool("storage-list", LISTERS);
        this.downloaders = Threads.pool("storage-fetch", options.downloads());
        this.parts = Threads.pool("storage-part", options.connections());
        this.shop = new Download.Shop(cache, disk, parts, options, clock);
        this.local = new Local(shop);
    }

    /** Whether a URI names a kind of store that is known. */
    public static boolean supports(String uri) {
        try {
            check(uri);
            return true;
        } catch (ServingException e) {
            return false;
        }
    }

    /**
     * Refuses a URI that no store here can serve.
     *
     * @throws ServingException INVALID_ARGUMENT with the supported forms
     */
    public static void check(String uri) {
        Uris.kind(uri);
    }

    /**
     * Brings what a URI names, or finds it in the cache. The store is asked each time whether it is still the same; two
     * requests for the same share one download. Cancelling the future of the stage
     * ({@code toCompletableFuture().cancel(true)}) gives up; what was brought so far is kept for the next attempt.
     *
     * @return a lease, which the caller closes. Fails with a ServingException: INVALID_ARGUMENT (URI, settings, a hostile
     *     archive), NOT_FOUND, UNAUTHENTICATED and PERMISSION_DENIED (the store said so), UNAVAILABLE (it cannot be
     *     reached), RESOURCE_EXHAUSTED (disk or quota), DATA_LOSS (a checksum does not agree), FAILED_PRECONDITION
     */
    public CompletionStage<Stored> fetch(StorageRequest request, Progress progress) {
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
     * A place that objects are written to. Nothing is asked of the store before the first {@link Bucket#put}.
     *
     * @param uri {@code s3://bucket/prefix}, {@code gs://bucket/prefix},
     *     {@code abfss://container@account.dfs.core.windows.net/prefix} (or {@code abfs://}), or the https URL of an Azure blob
     *     container; the prefix goes before all keys
     * @param credentials settings as those of {@link StorageRequest#credentials()}, asked for at each write, so that they may
     *     change; {@link StorageCredentials#writing} makes them from secrets. They go before
     *     {@link StorageOptions#environment()}
     * @throws ServingException INVALID_ARGUMENT for a URI that nothing can be written to
     */
    public Bucket bucket(String uri, Supplier<Map<String, String>> credentials) {
        return new Bucket(uri, credentials, options.environment(), sources, writes);
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
            waiter.fail(ServingException.of(Code.CANCELLED, "the storage is closed"));
        }
    }

    private void find(Waiter waiter) {
        StorageRequest request = waiter.request;
        String uri = request.uri();
        Uris.Kind kind = Uris.kind(uri);
        Settings settings = Settings.of(request.credentials(), options.environment());
        Patterns patterns = patterns(request, settings);
        if (kind == Uris.Kind.FILE || kind == Uris.Kind.PVC) {
            Stored stored = local.open(uri, Local.resolve(uri, kind, options.pvcRoot()), patterns, waiter.cancel);
            waiter.progress.on(new Progress.Step(Progress.Phase.DONE, stored.bytes(), stored.bytes(), 0, 0));
            waiter.give(stored);
            return;
        }
        waiter.progress.on(new Progress.Step(Progress.Phase.LISTING, 0, -1, 0, -1));
        String last = "last-" + Digests.sha256(uri + "\n" + patterns + "\n" + settings.identity());
        try {
            Sources.Opened opened = sources.open(uri, kind, settings, waiter.cancel);
            Source.Listing listing = Listings.settle(
                    opened.source().list(), patterns, uri, options.limits().entries());
            join(waiter, opened, listing, patterns, last, settings);
        } catch (ServingException e) {
            if (e.code() != Code.UNAVAILABLE || !options.useStale()) {
                throw e;
            }
            Stored stale = shop.cache().find(last, false).orElseThrow(() -> e);
            LOG.warn("{}; what was there the last time is used", e.getMessage());
            waiter.give(stale);
        }
    }

    private static Patterns patterns(StorageRequest request, Settings settings) {
        List<String> allow = request.allow().isEmpty() ? settings.list("STORAGE_ALLOW_PATTERNS") : request.allow();
        List<String> ignore = request.ignore().isEmpty() ? settings.list("STORAGE_IGNORE_PATTERNS") : request.ignore();
        return new Patterns(allow, ignore);
    }

    private void join(
            Waiter waiter,
            Sources.Opened opened,
            Source.Listing listing,
            Patterns patterns,
            String last,
            Settings settings) {
        StringBuilder all =
                new StringBuilder(listing.place()).append('\n').append(patterns).append('\n');
        for (Item item : listing.items()) {
            all.append(item.size())
                    .append('\0')
                    .append(item.version())
                    .append('\0')
                    .append(item.path())
                    .append('\n');
        }
        if (!listing.versioned()) {
            // What the store does not name may be another for who asks with other credentials.
            all.append(settings.identity());
        }
        String key = Digests.sha256(all.toString());
        synchronized (lock) {
            if (closed) {
                throw ServingException.of(Code.CANCELLED, "the storage is closed");
            }
            if (waiter.cancel.cancelled()) {
                return;
            }
            Job job = jobs.get(key);
            if (job != null) {
                job.join(waiter, last);
                return;
            }
            if (listing.versioned()) {
                Stored known = shop.cache().find(key, true).orElse(null);
                if (known != null) {
                    shop.cache().remember(last, known.digest());
                    waiter.progress.on(new Progress.Step(
                            Progress.Phase.DONE,
                            known.bytes(),
                            known.bytes(),
                            listing.items().size(),
                            listing.items().size()));
                    waiter.give(known);
                    return;
                }
            }
            Job fresh = new Job(key, opened, listing, patterns, Uris.shown(waiter.request.uri()));
            fresh.join(waiter, last);
            jobs.put(key, fresh);
            try {
                downloaders.execute(fresh);
            } catch (RejectedExecutionException e) {
                jobs.remove(key);
                throw ServingException.of(Code.CANCELLED, "the storage is closed");
            }
        }
    }

    /** Stops what is under way; leases stay usable as paths but protect nothing any more. */
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
                LOG.warn("downloads do not end");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        parts.shutdown();
        http.close();
        shop.cache().close();
    }

    /** Bytes that the cache holds; for tests and metrics of this package. */
    long held() {
        return shop.cache().held();
    }

    /** One who waits for a fetch. Thread-safe. */
    private final class Waiter {
        final StorageRequest request;
        final Progress progress;
        final CompletableFuture<Stored> result = new CompletableFuture<>();
        final Cancel cancel = new Cancel();
        private int changes;

        Waiter(StorageRequest request, Progress progress) {
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

        void give(Stored stored) {
            if (!result.complete(stored)) {
                stored.close();
            }
        }

        void fail(Throwable t) {
            if (t instanceof Changed && ++changes < CHANGES && !cancel.cancelled()) {
                begin(this);
                return;
            }
            if (t instanceof Changed) {
                result.completeExceptionally(ServingException.of(
                        Code.ABORTED,
                        Uris.shown(request.uri()) + " changes while it is brought, again and again",
                        "try again when the upload is complete"));
                return;
            }
            if (!(t instanceof ServingException)) {
                LOG.error("fetching {}", Uris.shown(request.uri()), t);
            }
            result.completeExceptionally(ServingException.from(t));
        }
    }

    /** A download that some wait for. Thread-safe: the storage's lock. */
    private final class Job implements Runnable {
        private final String key;
        private final Sources.Opened opened;
        private final Source.Listing listing;
        private final Patterns patterns;
        private final String uri;
        final Cancel cancel = new Cancel();
        private final Map<Waiter, String> waiters = new HashMap<>();
        private final List<Waiter> late = new ArrayList<>();

        Job(String key, Sources.Opened opened, Source.Listing listing, Patterns patterns, String uri) {
            this.key = key;
            this.opened = opened;
            this.listing = listing;
            this.patterns = patterns;
            this.uri = uri;
        }

        void join(Waiter waiter, String last) {
            synchronized (lock) {
                if (cancel.cancelled()) {
                    // Two must not work on the same files: this one begins anew when the other has ended.
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
            Stored stored;
            try {
                stored = bring();
            } catch (Throwable t) {
                leaveJobs().keySet().forEach(waiter -> waiter.fail(t));
                return;
            }
            try (stored) {
                if (listing.versioned()) {
                    shop.cache().remember(key, stored.digest());
                }
                leaveJobs().forEach((waiter, last) -> {
                    shop.cache().remember(last, stored.digest());
                    waiter.give(shop.cache().again(stored, true));
                });
            }
        }

        private Stored bring() {
            try {
                return download(listing, key);
            } catch (Download.NoRangesHere e) {
                LOG.info("{}: the store ignores ranges; every object is brought in one piece", uri);
                List<Item> whole = new ArrayList<>();
                listing.items().forEach(item -> whole.add(item.without(Item.Ranges.NONE)));
                return download(new Source.Listing(listing.place(), whole, listing.shape()), key);
            }
        }

        private Stored download(Source.Listing what, String directory) {
            return new Download(
                            shop, opened.session(), what, patterns, directory, uri, opened.wide(), cancel, this::tell)
                    .run();
        }

        private void tell(Progress.Step step) {
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
