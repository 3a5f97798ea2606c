// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.archive.ArchiveExtractor;
import io.nereid.storage.archive.ContentManifest;
import io.nereid.storage.archive.ExtractionDirectory;
import io.nereid.storage.cache.CacheFileSystem;
import io.nereid.storage.cache.CacheReservation;
import io.nereid.storage.cache.DownloadTarget;
import io.nereid.storage.object.ContentDigests;
import io.nereid.storage.object.GlobFilter;
import io.nereid.storage.object.ObjectPaths;
import io.nereid.storage.request.ProgressListener;
import io.nereid.storage.request.StorageLease;
import io.nereid.storage.request.StorageOptions;
import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.Checksum;
import io.nereid.storage.spi.ChecksumAlgorithm;
import io.nereid.storage.spi.ObjectEntry;
import io.nereid.storage.spi.ObjectSource;
import io.nereid.storage.spi.RangesIgnoredException;
import io.nereid.storage.spi.StorageContext;
import io.nereid.storage.transfer.DownloadJournal;
import io.nereid.storage.transfer.RangeDownload;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Downloads all objects of a listing, verifies their checksums and publishes the result in the cache. Objects are split
 * into parts of 8 MiB. The parts of all downloads share a small pool of threads, each with one small buffer, so memory
 * use does not depend on the size of a model. A journal records complete parts, so that an interrupted download
 * resumes. {@link #run} is called once, on one thread; parts run on the pool's threads. State shared between them is
 * guarded by this object's monitor.
 */
final class Download {
    static final long PART = 8 << 20;
    private static final Logger LOG = LoggerFactory.getLogger(Download.class);
    private static final long SPACE_STEP = 16 << 20;
    private static final long REPORT_NANOS = 200_000_000L;

    /** The resources that all downloads share. Immutable. */
    record DownloadContext(
            DownloadTarget target, CacheFileSystem disk, Executor threads, StorageOptions options, Clock clock) {}

    private final DownloadContext context;
    private final StorageContext request;
    private final ObjectSource.Listing listing;
    private final GlobFilter patterns;
    private final String key;
    private final String uri;
    private final int maxParts;
    private final ProgressListener progress;
    private final CancellationToken fetchCancel;
    private final CancellationToken cancel = new CancellationToken();

    private final ContentManifest manifest = new ContentManifest();
    private final AtomicLong bytes = new AtomicLong();
    private final AtomicInteger filesDone = new AtomicInteger();
    private final AtomicLong lastReport = new AtomicLong();
    private final CountDownLatch done = new CountDownLatch(1);

    @GuardedBy("this") private final Deque<Part> todo = new ArrayDeque<>();

    @GuardedBy("this") private int running;

    @GuardedBy("this") private @Nullable Throwable failure;

    private @Nullable DownloadJournal journal;

    @GuardedBy("this") private @Nullable CacheReservation reservation;

    private record Part(ObjectDownload object, int number, long from, long to) {}

    /** The state of one object's download. Guarded by the download's monitor. */
    private static final class ObjectDownload {
        final int index;
        final Path file;
        final ObjectEntry item;
        int left;
        boolean opaqueTag;

        @Nullable FileChannel channel;
        /** SHA-256 of the first download if its checksum did not match, else empty. */
        String mismatch = "";
        /** SHA-256 of the complete file, else empty. */
        String sha256 = "";

        long size;

        ObjectDownload(int index, Path file, ObjectEntry item) {
            this.index = index;
            this.file = file;
            this.item = item;
        }
    }

    /**
     * Creates a download.
     *
     * @param request what the source was opened with
     * @param uri without secrets, for messages
     * @param maxParts maximum number of parts that run at once
     * @param fetchCancel the cancellation of the fetch
     */
    Download(
            DownloadContext context,
            StorageContext request,
            ObjectSource.Listing listing,
            GlobFilter patterns,
            String key,
            String uri,
            int maxParts,
            CancellationToken fetchCancel,
            ProgressListener progress) {
        this.context = context;
        this.request = request;
        this.listing = listing;
        this.patterns = patterns;
        this.key = key;
        this.uri = uri;
        this.maxParts = maxParts;
        this.progress = progress;
        this.fetchCancel = fetchCancel;
    }

    /**
     * Downloads everything and returns a lease on it. Partial files are kept for the next attempt if the failure may be
     * temporary and the store versions its objects; without versions, parts of different contents could be mixed.
     */
    StorageLease run() {
        boolean keep = false;
        Runnable ending = cancel::cancel;
        fetchCancel.add(ending);
        try (CacheReservation space = context.target().space(uri)) {
            try {
                return download(space);
            } catch (IOException e) {
                throw storageFailure(e);
            } catch (ServingException e) {
                keep = e.code() == ErrorCode.UNAVAILABLE || e.code() == ErrorCode.CANCELLED;
                throw e;
            } finally {
                fetchCancel.remove(ending);
                context.target().leave(key, keep && bytes.get() > 0 && listing.versioned());
            }
        }
    }

    private ServingException storageFailure(IOException e) {
        if (CacheFileSystem.full(e)) {
            long total = listing.bytes();
            return ServingException.wrap(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    "the disk is full: " + uri + " needs "
                            + (total < 0
                                    ? "more than " + CacheFileSystem.shown(bytes.get())
                                    : CacheFileSystem.shown(total))
                            + " in "
                            + context.target().directory(),
                    context.target().remedyWhenFull(),
                    e);
        }
        return CacheFileSystem.failed(
                uri + " cannot be stored in " + context.target().directory(), e);
    }

    private StorageLease download(CacheReservation space) throws IOException {
        Path directory = context.target().enter(key);
        if (!listing.versioned()) {
            CacheFileSystem.delete(directory);
            Files.createDirectories(directory);
        }
        Path about = directory.resolve("listing.txt");
        if (!Files.exists(about)) {
            CacheFileSystem.replace(about, describe().getBytes(StandardCharsets.UTF_8));
        }
        List<ObjectDownload> objects = new ArrayList<>();
        try (DownloadJournal opened = new DownloadJournal(directory.resolve("journal"))) {
            journal = opened;
            for (int i = 0; i < listing.items().size(); i++) {
                objects.add(new ObjectDownload(
                        i, directory.resolve("f" + i), listing.items().get(i)));
            }
            synchronized (this) {
                plan(objects);
                reservation = space;
            }
            long total = listing.bytes();
            if (total >= 0) {
                space.needs(total, bytes.get());
            }
            report(ProgressListener.Phase.DOWNLOADING, true);
            pump();
            await();
        } finally {
            for (ObjectDownload object : objects) {
                close(object);
            }
        }
        Throwable failed;
        synchronized (this) {
            failed = failure;
        }
        if (failed != null) {
            if (failed instanceof IOException e) {
                throw e;
            }
            if (failed instanceof RuntimeException e) {
                throw e;
            }
            throw ServingException.from(failed);
        }
        return assemble(objects, space);
    }

    /** Describes the listing, for operators who inspect the directory of a partial download. */
    private String describe() {
        StringBuilder text = new StringBuilder(uri).append('\n');
        for (ObjectEntry item : listing.items()) {
            text.append(item.size())
                    .append(' ')
                    .append(item.version())
                    .append(' ')
                    .append(item.path())
                    .append('\n');
        }
        return text.toString();
    }

    @GuardedBy("this") private void plan(List<ObjectDownload> objects) throws IOException {
        DownloadJournal known = journal();
        for (ObjectDownload object : objects) {
            boolean there = Files.exists(object.file);
            if (!there) {
                // An attempt that ended while its complete files were moved left the journal without them.
                known.forget(object.index);
            }
            List<Part> parts = parts(object);
            object.left = parts.size();
            long length = there ? Files.size(object.file) : 0;
            if (parts.stream().anyMatch(part -> part.to() > length && known.has(object.index, part.number()))) {
                // Another program has shortened the file. What would be written behind its end would leave a hole.
                known.forget(object.index);
            }
            for (Part part : parts) {
                if (there && part.to() >= 0 && known.has(object.index, part.number())) {
                    bytes.addAndGet(part.to() - part.from());
                }
                todo.add(part);
            }
        }
    }

    private List<Part> parts(ObjectDownload object) {
        ObjectEntry item = object.item;
        if (item.size() < 0 || !item.ranges() || item.size() <= PART) {
            return List.of(new Part(object, 0, 0, item.size()));
        }
        List<Part> parts = new ArrayList<>();
        int number = 0;
        for (long from = 0; from < item.size(); from += PART) {
            parts.add(new Part(object, number++, from, Math.min(item.size(), from + PART)));
        }
        return parts;
    }

    private DownloadJournal journal() {
        DownloadJournal open = journal;
        if (open == null) {
            throw new IllegalStateException("no journal");
        }
        return open;
    }

    /**
     * Starts as many parts as may run at once. Each ended part calls this again and starts the next one, so the pool's
     * queue never holds more than {@code maxParts} parts of one download and concurrent downloads progress evenly.
     */
    private void pump() {
        List<Part> now = new ArrayList<>();
        synchronized (this) {
            while (running < maxParts && failure == null && !todo.isEmpty()) {
                now.add(todo.remove());
                running++;
            }
            if (running == 0) {
                done.countDown();
            }
        }
        for (Part part : now) {
            try {
                context.threads().execute(() -> work(part));
            } catch (java.util.concurrent.RejectedExecutionException e) {
                fail(ServingException.of(ErrorCode.CANCELLED, "the storage is closed"));
                synchronized (this) {
                    running--;
                }
            }
        }
        synchronized (this) {
            if (running == 0 && (failure != null || todo.isEmpty())) {
                done.countDown();
            }
        }
    }

    private void await() {
        try {
            done.await();
        } catch (InterruptedException e) {
            fail(ServingException.of(ErrorCode.CANCELLED, "the fetch was interrupted"));
            Thread.currentThread().interrupt();
        }
    }

    private void fail(Throwable why) {
        synchronized (this) {
            if (failure == null) {
                failure = why;
            }
            todo.clear();
        }
        cancel.cancel();
    }

    private void work(Part part) {
        try {
            cancel.check();
            if (transfer(part)) {
                complete(part.object());
            }
        } catch (RangesIgnoredException e) {
            fail(new WholeObjectsOnlyException());
        } catch (Throwable t) {
            fail(t);
        } finally {
            synchronized (this) {
                running--;
            }
            pump();
        }
    }

    /** Downloads a part unless the journal has it. Returns whether the object is complete. */
    private boolean transfer(Part part) throws IOException {
        ObjectDownload object = part.object();
        FileChannel channel;
        synchronized (this) {
            if (object.channel == null) {
                object.channel = FileChannel.open(object.file, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
            }
            channel = object.channel;
        }
        ObjectEntry item = object.item;
        if (!journal().has(object.index, part.number()) || part.to() < 0) {
            if (part.to() != 0) {
                RangeDownload transfer = new RangeDownload(
                        request,
                        cancel,
                        context.disk(),
                        uri + " (" + item.path() + ")",
                        item,
                        channel,
                        this::arrived,
                        this::grow);
                long end = transfer.run(part.from(), part.to());
                if (part.to() < 0) {
                    channel.truncate(end);
                }
                synchronized (this) {
                    object.opaqueTag |= transfer.opaqueTag();
                }
            }
            // The bytes must be on disk before the journal says so, or a crash would leave a hole.
            channel.force(false);
            journal().add(object.index, part.number());
        }
        synchronized (this) {
            return --object.left == 0;
        }
    }

    private void arrived(long more) {
        bytes.addAndGet(more);
        report(ProgressListener.Phase.DOWNLOADING, false);
    }

    private synchronized void grow(long length) {
        CacheReservation space = reservation;
        if (space != null) {
            long then = bytes.get() + (1 << 16);
            space.needs((then + SPACE_STEP - 1) / SPACE_STEP * SPACE_STEP, Math.min(length, bytes.get()));
        }
    }

    /** The store ignores range requests, so the download must restart with one request per object. */
    static final class WholeObjectsOnlyException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        WholeObjectsOnlyException() {
            super("the store ignores ranges", null, false, false);
        }
    }

    /**
     * Verifies the checksum of a complete object. A mismatch downloads the object once more; a second one fails with
     * DATA_LOSS. An entity tag that looks like an MD5 need not be one: it is ignored for an object encrypted with KMS,
     * and when a second download gives the same content.
     */
    private void complete(ObjectDownload object) throws IOException {
        close(object);
        Checksum wanted = object.item.checksum();
        ContentDigests.Read read = ContentDigests.read(object.file, wanted, cancel);
        boolean agrees = wanted == null || wanted.hex().equals(read.found());
        boolean guess = wanted != null && wanted.algorithm() == ChecksumAlgorithm.TAG_MD5;
        if (!agrees && guess && (object.opaqueTag || read.sha256().equals(object.mismatch))) {
            LOG.debug("{}: the entity tag of {} is not an MD5", uri, object.item.path());
            agrees = true;
        }
        if (agrees) {
            object.sha256 = read.sha256();
            object.size = Files.size(object.file);
            filesDone.incrementAndGet();
            report(ProgressListener.Phase.DOWNLOADING, false);
            return;
        }
        if (!object.mismatch.isEmpty()) {
            throw ServingException.of(
                    ErrorCode.DATA_LOSS,
                    uri + ": the content of '" + object.item.path()
                            + "' does not have the checksum that the store gives ("
                            + (wanted == null ? "" : wanted.algorithm() + " " + wanted.hex()) + ", found "
                            + read.found()
                            + ")",
                    "upload it again");
        }
        synchronized (this) {
            object.mismatch = read.sha256();
            journal().forget(object.index);
            bytes.addAndGet(-Files.size(object.file));
            Files.delete(object.file);
            List<Part> again = parts(object);
            object.left = again.size();
            todo.addAll(again);
        }
    }

    private synchronized void close(ObjectDownload object) {
        try {
            if (object.channel != null) {
                object.channel.close();
                object.channel = null;
            }
        } catch (IOException e) {
            LOG.warn("closing {}: {}", object.file, e.getMessage());
        }
    }

    private StorageLease assemble(List<ObjectDownload> objects, CacheReservation space) throws IOException {
        Path stagingDirectory = context.target().stagingDirectory();
        try {
            Path tree = Files.createDirectory(stagingDirectory.resolve("tree"));
            ObjectEntry first = listing.items().get(0);
            StorageOptions.Limits limits = context.options().limits();
            if (listing.shape() == ObjectSource.Shape.LAYERS) {
                report(ProgressListener.Phase.UNPACKING, true);
                ExtractionDirectory into = new ExtractionDirectory(
                        tree, uri, limits, context.disk(), space, bytes.get(), cancel, manifest, patterns, "models");
                StorageOptions.Limits image =
                        new StorageOptions.Limits(Integer.MAX_VALUE, limits.bytes(), limits.ratio());
                for (ObjectDownload layer : objects) {
                    new ArchiveExtractor(into, image, uri).archive(layer.file, layer.item.path());
                }
                into.finish();
            } else if (listing.shape() == ObjectSource.Shape.FILES
                    && objects.size() == 1
                    && ObjectPaths.archive(first.path())) {
                report(ProgressListener.Phase.UNPACKING, true);
                ExtractionDirectory into = new ExtractionDirectory(
                        tree, uri, limits, context.disk(), space, bytes.get(), cancel, manifest, patterns, null);
                ArchiveExtractor unpack = new ArchiveExtractor(into, limits, uri);
                unpack.archive(objects.get(0).file, first.path());
                into.finish();
            } else {
                place(objects, tree);
            }
            manifest.requireFiles(uri);
            report(ProgressListener.Phase.STORING, true);
            cancel.check();
            StorageLease stored = context.target().publish(stagingDirectory, manifest.digest(), manifest.bytes(), uri);
            progress.on(new ProgressListener.Step(
                    ProgressListener.Phase.DONE, bytes.get(), bytes.get(), objects.size(), objects.size()));
            return stored;
        } finally {
            CacheFileSystem.deleteQuietly(stagingDirectory);
        }
    }

    private void place(List<ObjectDownload> objects, Path tree) throws IOException {
        Set<Path> made = new HashSet<>();
        for (ObjectDownload object : objects) {
            Path file = tree.resolve(object.item.path());
            Path parent = file.getParent();
            if (parent != null && made.add(parent)) {
                Files.createDirectories(parent);
            }
            Files.move(object.file, file, StandardCopyOption.ATOMIC_MOVE);
            manifest.file(object.item.path(), object.sha256, object.size);
        }
    }

    private void report(ProgressListener.Phase phase, boolean surely) {
        long now = context.clock().nanos();
        long last = lastReport.get();
        if (surely || now - last > REPORT_NANOS && lastReport.compareAndSet(last, now)) {
            progress.on(new ProgressListener.Step(
                    phase,
                    bytes.get(),
                    listing.bytes(),
                    filesDone.get(),
                    listing.items().size()));
        }
    }
}
