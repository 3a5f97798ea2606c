// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.storage.cache.CacheFileSystem;
import io.nereid.storage.credentials.TokenCache;
import io.nereid.storage.directory.TargetDirectory;
import io.nereid.storage.http.HttpClients;
import io.nereid.storage.object.ContentDigests;
import io.nereid.storage.object.GlobFilter;
import io.nereid.storage.provider.StorageProviders;
import io.nereid.storage.request.ProgressListener;
import io.nereid.storage.request.StorageLease;
import io.nereid.storage.request.StorageOptions;
import io.nereid.storage.request.StorageRequest;
import io.nereid.storage.request.StorageUris;
import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.ObjectChangedException;
import io.nereid.storage.spi.StorageProvider;
import io.nereid.storage.spi.StorageSettings;
import io.nereid.storage.spi.StorageUri;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.ExecutorService;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Fetches models into directories that the caller names, without the cache of {@link Storage}: what a pod's init
 * container does. The files of the source lie in the directory under their own names; a single archive is unpacked there;
 * local files are linked. An interrupted fetch continues, and a complete one is not repeated while the store's content is
 * unchanged. Thread-safe for different directories; {@link #fetch} blocks.
 *
 * <pre>{@code
 * StorageOptions options = StorageOptions.defaults(Path.of("unused")).withEnvironment(System.getenv());
 * try (DirectoryFetcher fetcher = new DirectoryFetcher(options, Clock.system(), List.of())) {
 *     fetcher.fetch(StorageRequest.of("s3://models/iris"), Path.of("/mnt/models"), ProgressListener.none(),
 *             new CancellationToken());
 * }
 * }</pre>
 */
public final class DirectoryFetcher implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(DirectoryFetcher.class);
    /** Attempts of a fetch whose objects change while they are downloaded. */
    private static final int CHANGES = 4;

    /** How a fetch ended well. */
    public enum Outcome {
        /** Files were downloaded, unpacked or linked. */
        FETCHED,
        /** The directory had the current content already. */
        UNCHANGED,
        /** The store cannot be reached; the directory has the content of the last complete fetch. */
        STALE
    }

    /**
     * What is in the directory. Immutable.
     *
     * @param files of the source
     * @param bytes of these files; links count nothing
     */
    public record Fetched(Outcome outcome, int files, long bytes) {}

    private final StorageOptions options;
    private final Clock clock;
    private final CacheFileSystem disk;
    private final HttpClients http;
    private final StorageProviders providers;
    private final SourceOpener sources;
    private final ExecutorService parts;

    /**
     * Creates a fetcher; reaches no store.
     *
     * @param options its cache, quotas and number of downloads are not used
     * @param plugins each replaces the built-in provider of its schemes
     * @throws ServingException FAILED_PRECONDITION when two plugins have a scheme in common
     */
    public DirectoryFetcher(StorageOptions options, Clock clock, List<StorageProvider> plugins) {
        this(options, clock, plugins, new CacheFileSystem());
    }

    DirectoryFetcher(StorageOptions options, Clock clock, List<StorageProvider> plugins, CacheFileSystem disk) {
        this.options = options;
        this.clock = clock;
        this.disk = disk;
        this.http = new HttpClients(options, clock);
        this.providers = new StorageProviders(http, new TokenCache(clock), StorageProviders.byScheme(plugins));
        this.sources = new SourceOpener(providers, options);
        this.parts = Threads.pool("storage-part", options.connections());
    }

    /**
     * Fetches the objects that a URI names into a directory, which is created if it is absent.
     *
     * @param progress called on the threads of the fetch
     * @param cancel ends the fetch; what was downloaded is kept for the next attempt
     * @throws ServingException as the stage of {@link Storage#fetch} fails; FAILED_PRECONDITION also for a directory that
     *     cannot be used
     */
    public Fetched fetch(StorageRequest request, Path directory, ProgressListener progress, CancellationToken cancel) {
        String uri = request.uri();
        StorageUris.Kind kind = providers.isPlugin(uri) ? null : StorageUris.kind(uri);
        options.access().check(uri);
        StorageSettings settings = providers.settings(request.credentials());
        GlobFilter patterns = SourceOpener.patterns(request, settings);
        if (kind == StorageUris.Kind.FILE || kind == StorageUris.Kind.PVC) {
            return link(uri, kind, directory, patterns, progress, cancel);
        }
        try (TargetDirectory target = TargetDirectory.open(directory, uri, disk)) {
            // No credentials in the name: what was fetched lies in the directory already, readable by its owner.
            String last = "last-" + ContentDigests.sha256(uri + "\n" + patterns);
            for (int changes = 1; ; changes++) {
                try {
                    return attempt(request, target, settings, patterns, last, progress, cancel);
                } catch (ObjectChangedException e) {
                    if (changes == CHANGES || cancel.cancelled()) {
                        throw ServingException.of(
                                ErrorCode.ABORTED,
                                StorageUri.shown(uri) + " keeps changing while it is downloaded",
                                "try again when the upload is complete");
                    }
                }
            }
        }
    }

    private Fetched attempt(
            StorageRequest request,
            TargetDirectory target,
            StorageSettings settings,
            GlobFilter patterns,
            String last,
            ProgressListener progress,
            CancellationToken cancel) {
        progress.on(new ProgressListener.Step(ProgressListener.Phase.LISTING, 0, -1, 0, -1));
        SourceOpener.Opened found;
        try {
            found = sources.open(request.uri(), patterns, settings, cancel);
        } catch (ServingException e) {
            StorageLease stale = e.code() == ErrorCode.UNAVAILABLE && options.useStale() && !cancel.cancelled()
                    ? target.find(last, false).orElse(null)
                    : null;
            if (stale == null) {
                throw e;
            }
            LOG.warn("{}; the files of the last complete fetch are used", e.getMessage());
            return new Fetched(Outcome.STALE, target.files(), stale.bytes());
        }
        try (SourceOpener.Opened opened = found) {
            String key = SourceOpener.key(opened.listing(), patterns, settings);
            if (opened.listing().versioned()) {
                StorageLease known = target.find(key, true).orElse(null);
                if (known != null) {
                    return new Fetched(Outcome.UNCHANGED, target.files(), known.bytes());
                }
            }
            StorageLease stored = download(opened, target, key, patterns, request.uri(), progress, cancel);
            if (opened.listing().versioned()) {
                target.remember(key, stored.digest());
            }
            target.remember(last, stored.digest());
            return new Fetched(Outcome.FETCHED, target.files(), stored.bytes());
        }
    }

    private StorageLease download(
            SourceOpener.Opened opened,
            TargetDirectory target,
            String key,
            GlobFilter patterns,
            String uri,
            ProgressListener progress,
            CancellationToken cancel) {
        var context = new Download.DownloadContext(target, disk, parts, options, clock);
        String shown = StorageUri.shown(uri);
        try {
            return new Download(
                            context,
                            opened.context(),
                            opened.listing(),
                            patterns,
                            key,
                            shown,
                            opened.reads(),
                            cancel,
                            progress)
                    .run();
        } catch (Download.WholeObjectsOnlyException e) {
            LOG.info("{}: the store ignores range requests; every object is downloaded with one request", shown);
            return new Download(
                            context,
                            opened.context(),
                            SourceOpener.withoutRanges(opened.listing()),
                            patterns,
                            key,
                            shown,
                            opened.reads(),
                            cancel,
                            progress)
                    .run();
        }
    }

    private Fetched link(
            String uri,
            StorageUris.Kind kind,
            Path directory,
            GlobFilter patterns,
            ProgressListener progress,
            CancellationToken cancel) {
        String shown = StorageUri.shown(uri);
        Path path = LocalSource.resolve(uri, kind, options.pvcRoot());
        options.access().checkPath(uri, path);
        if (!Files.exists(path)) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "Local path " + shown + " does not exist.",
                    "mount the volume that holds it, and check the path");
        }
        try {
            Path from = path.toRealPath();
            Path to = TargetDirectory.real(directory);
            if (from.startsWith(to)) {
                // The files are where they are wanted, as a volume that is mounted there.
                return new Fetched(Outcome.UNCHANGED, 0, 0);
            }
            if (to.startsWith(from)) {
                throw ServingException.invalidArgument(
                        shown + " contains the directory " + directory + ", into which it would be linked",
                        "name a directory outside of it");
            }
        } catch (IOException e) {
            throw CacheFileSystem.failed(shown + " cannot be linked into " + directory, e);
        }
        try (TargetDirectory target = TargetDirectory.open(directory, uri, disk)) {
            var context = new Download.DownloadContext(target, disk, parts, options, clock);
            StorageLease stored = new LocalSource(context, false).open(uri, path, patterns, cancel);
            progress.on(new ProgressListener.Step(
                    ProgressListener.Phase.DONE, stored.bytes(), stored.bytes(), target.files(), target.files()));
            return new Fetched(
                    target.published() ? Outcome.FETCHED : Outcome.UNCHANGED, target.files(), stored.bytes());
        }
    }

    /**
     * Removes what earlier fetches of other URIs have put into a directory, so that files of two models are not mixed.
     *
     * @param uris those that are fetched into the directory
     */
    public void retain(Path directory, Collection<String> uris) {
        TargetDirectory.retain(directory, uris, disk);
    }

    /** Closes all connections. No fetch is running. */
    @Override
    public void close() {
        parts.shutdown();
        http.close();
    }
}
