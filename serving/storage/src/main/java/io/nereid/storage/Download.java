// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
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
 * Brings all objects of a listing and puts them together. Parts of all downloads take turns on the same few threads,
 * each with one small buffer. {@link #run} is called once, on one thread; parts run on others.
 */
final class Download {
    static final long PART = 8 << 20;
    private static final Logger LOG = LoggerFactory.getLogger(Download.class);
    private static final long SPACE_STEP = 16 << 20;
    private static final long TELL_NANOS = 200_000_000L;

    /** What every download uses. Immutable. */
    record Shop(Cache cache, Disk disk, Executor threads, StorageOptions options, Clock clock) {}

    private final Shop shop;
    private final HttpSession session;
    private final Source.Listing listing;
    private final Patterns patterns;
    private final String key;
    private final String uri;
    private final int wide;
    private final Progress progress;
    private final Cancel whole;
    private final Cancel cancel = new Cancel();

    private final Manifest manifest = new Manifest();
    private final AtomicLong bytes = new AtomicLong();
    private final AtomicInteger filesDone = new AtomicInteger();
    private final AtomicLong told = new AtomicLong();
    private final CountDownLatch done = new CountDownLatch(1);

    private final Deque<Part> todo = new ArrayDeque<>();
    private int running;
    private @Nullable Throwable failure;
    private @Nullable Journal journal;
    private @Nullable Space spaceOf;

    private record Part(Piece object, int number, long from, long to) {}

    /** An object on its way. Guarded by the download. */
    private static final class Piece {
        final int index;
        final Path file;
        final Item item;
        int left;
        boolean keyed;

        @Nullable
        FileChannel channel;
        /** What an earlier attempt had that did not agree. */
        String refused = "";
        /** Known once it is whole. */
        String sha256 = "";

        long size;

        Piece(int index, Path file, Item item) {
            this.index = index;
            this.file = file;
            this.item = item;
        }
    }

    /**
     * A download.
     *
     * @param uri as it may be shown
     * @param wide how many parts run at once, if there are threads
     * @param whole ends it, and whatever else is done for the same fetch
     */
    Download(
            Shop shop,
            HttpSession session,
            Source.Listing listing,
            Patterns patterns,
            String key,
            String uri,
            int wide,
            Cancel whole,
            Progress progress) {
        this.shop = shop;
        this.session = session;
        this.listing = listing;
        this.patterns = patterns;
        this.key = key;
        this.uri = uri;
        this.wide = wide;
        this.progress = progress;
        this.whole = whole;
    }

    /** Brings everything and gives a lease on it. */
    Stored run() {
        boolean keep = false;
        Runnable ending = cancel::cancel;
        session.follow(cancel);
        whole.add(ending);
        try (Space space = shop.cache().space(uri)) {
            try {
                return bring(space);
            } catch (IOException e) {
                throw told(e);
            } catch (ServingException e) {
                keep = e.code() == ErrorCode.UNAVAILABLE || e.code() == ErrorCode.CANCELLED;
                throw e;
            } finally {
                whole.remove(ending);
                shop.cache().leave(key, keep && bytes.get() > 0 && listing.versioned());
            }
        }
    }

    private ServingException told(IOException e) {
        if (Disk.full(e)) {
            long total = listing.bytes();
            return ServingException.wrap(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    "the disk is full: " + uri + " needs "
                            + (total < 0 ? "more than " + Disk.shown(bytes.get()) : Disk.shown(total)) + " in "
                            + shop.options().cache(),
                    "free some disk, or move the storage cache",
                    e);
        }
        return Disk.failed(uri + " cannot be stored in " + shop.options().cache(), e);
    }

    private Stored bring(Space space) throws IOException {
        Path directory = shop.cache().enter(key);
        if (!listing.versioned()) {
            Disk.delete(directory);
            Files.createDirectories(directory);
        }
        Path about = directory.resolve("listing.txt");
        if (!Files.exists(about)) {
            Disk.replace(about, describe().getBytes(StandardCharsets.UTF_8));
        }
        List<Piece> objects = new ArrayList<>();
        try (Journal opened = new Journal(directory.resolve("journal"))) {
            journal = opened;
            for (int i = 0; i < listing.items().size(); i++) {
                objects.add(
                        new Piece(i, directory.resolve("f" + i), listing.items().get(i)));
            }
            plan(objects);
            long total = listing.bytes();
            if (total >= 0) {
                space.needs(total, bytes.get());
            }
            tell(Progress.Phase.DOWNLOADING, true);
            spaceOf = space;
            pump();
            await();
        } finally {
            for (Piece object : objects) {
                close(object);
            }
        }
        Throwable failed = failure;
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

    /** What is being brought, for people who look into the directory. */
    private String describe() {
        StringBuilder text = new StringBuilder(uri).append('\n');
        for (Item item : listing.items()) {
            text.append(item.size())
                    .append(' ')
                    .append(item.version())
                    .append(' ')
                    .append(item.path())
                    .append('\n');
        }
        return text.toString();
    }

    private void plan(List<Piece> objects) throws IOException {
        Journal known = journal();
        for (Piece object : objects) {
            boolean there = Files.exists(object.file);
            List<Part> parts = parts(object);
            object.left = parts.size();
            for (Part part : parts) {
                if (there && part.to() >= 0 && known.has(object.index, part.number())) {
                    bytes.addAndGet(part.to() - part.from());
                }
                todo.add(part);
            }
        }
    }

    private List<Part> parts(Piece object) {
        Item item = object.item;
        if (item.size() < 0 || item.ranges() == Item.Ranges.NONE || item.size() <= PART) {
            return List.of(new Part(object, 0, 0, item.size()));
        }
        List<Part> parts = new ArrayList<>();
        int number = 0;
        for (long from = 0; from < item.size(); from += PART) {
            parts.add(new Part(object, number++, from, Math.min(item.size(), from + PART)));
        }
        return parts;
    }

    private Journal journal() {
        Journal open = journal;
        if (open == null) {
            throw new IllegalStateException("no journal");
        }
        return open;
    }

    /** Hands as many parts to the threads as may run; the rest follows one by one, so that others get their turn. */
    private void pump() {
        List<Part> now = new ArrayList<>();
        synchronized (this) {
            while (running < wide && failure == null && !todo.isEmpty()) {
                now.add(todo.remove());
                running++;
            }
            if (running == 0) {
                done.countDown();
            }
        }
        for (Part part : now) {
            try {
                shop.threads().execute(() -> work(part));
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
        } catch (Transfer.NoRanges e) {
            fail(new NoRangesHere());
        } catch (Throwable t) {
            fail(t);
        } finally {
            synchronized (this) {
                running--;
            }
            pump();
        }
    }

    /** Brings a part unless it is here; true if that makes the object whole. */
    private boolean transfer(Part part) throws IOException {
        Piece object = part.object();
        FileChannel channel;
        synchronized (this) {
            if (object.channel == null) {
                object.channel = FileChannel.open(object.file, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
            }
            channel = object.channel;
        }
        Item item = object.item;
        if (!journal().has(object.index, part.number()) || part.to() < 0) {
            if (part.to() != 0) {
                Transfer transfer = new Transfer(
                        session, shop.disk(), uri + " (" + item.path() + ")", item, channel, this::arrived, this::grow);
                long end = transfer.run(part.from(), part.to());
                if (part.to() < 0) {
                    channel.truncate(end);
                }
                synchronized (this) {
                    object.keyed |= transfer.keyed();
                }
            }
            channel.force(false);
            journal().add(object.index, part.number());
        }
        synchronized (this) {
            return --object.left == 0;
        }
    }

    private void arrived(long more) {
        bytes.addAndGet(more);
        tell(Progress.Phase.DOWNLOADING, false);
    }

    private synchronized void grow(long length) {
        Space space = spaceOf;
        if (space != null) {
            long then = bytes.get() + (1 << 16);
            space.needs((then + SPACE_STEP - 1) / SPACE_STEP * SPACE_STEP, Math.min(length, bytes.get()));
        }
    }

    /** The store of this download does not know ranges. */
    static final class NoRangesHere extends RuntimeException {
        private static final long serialVersionUID = 1L;

        NoRangesHere() {
            super("the store ignores ranges", null, false, false);
        }
    }

    /** Looks at an object that is whole. */
    private void complete(Piece object) throws IOException {
        close(object);
        Digests.Checksum wanted = object.item.checksum();
        Digests.Read read = Digests.read(object.file, wanted, cancel);
        boolean agrees = wanted == null || wanted.hex().equals(read.found());
        boolean guess = wanted != null && wanted.algorithm() == Digests.Algorithm.TAG_MD5;
        if (!agrees && guess && (object.keyed || read.sha256().equals(object.refused))) {
            LOG.debug("{}: the entity tag of {} is no MD5", uri, object.item.path());
            agrees = true;
        }
        if (agrees) {
            object.sha256 = read.sha256();
            object.size = Files.size(object.file);
            filesDone.incrementAndGet();
            tell(Progress.Phase.DOWNLOADING, false);
            return;
        }
        if (!object.refused.isEmpty()) {
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
            object.refused = read.sha256();
            journal().forget(object.index);
            bytes.addAndGet(-Files.size(object.file));
            Files.delete(object.file);
            List<Part> again = parts(object);
            object.left = again.size();
            todo.addAll(again);
        }
    }

    private synchronized void close(Piece object) {
        try {
            if (object.channel != null) {
                object.channel.close();
                object.channel = null;
            }
        } catch (IOException e) {
            LOG.warn("closing {}: {}", object.file, e.getMessage());
        }
    }

    private Stored assemble(List<Piece> objects, Space space) throws IOException {
        Path workshop = shop.cache().workshop();
        try {
            Path tree = Files.createDirectory(workshop.resolve("tree"));
            Item first = listing.items().get(0);
            StorageOptions.Limits limits = shop.options().limits();
            if (listing.shape() == Source.Shape.LAYERS) {
                tell(Progress.Phase.UNPACKING, true);
                Tree into = new Tree(
                        tree, uri, limits, shop.disk(), space, bytes.get(), cancel, manifest, patterns, "models");
                StorageOptions.Limits image =
                        new StorageOptions.Limits(Integer.MAX_VALUE, limits.bytes(), limits.ratio());
                for (Piece layer : objects) {
                    new Unpack(into, image, uri).archive(layer.file, layer.item.path());
                }
                into.finish();
            } else if (listing.shape() == Source.Shape.FILES && objects.size() == 1 && Paths.archive(first.path())) {
                tell(Progress.Phase.UNPACKING, true);
                Tree into =
                        new Tree(tree, uri, limits, shop.disk(), space, bytes.get(), cancel, manifest, patterns, null);
                Unpack unpack = new Unpack(into, limits, uri);
                unpack.archive(objects.get(0).file, first.path());
                into.finish();
            } else {
                place(objects, tree);
            }
            manifest.requireFiles(uri);
            tell(Progress.Phase.STORING, true);
            settle(tree);
            cancel.check();
            Stored stored = shop.cache().publish(workshop, manifest.digest(), manifest.bytes(), uri);
            progress.on(
                    new Progress.Step(Progress.Phase.DONE, bytes.get(), bytes.get(), objects.size(), objects.size()));
            return stored;
        } finally {
            Disk.deleteQuietly(workshop);
        }
    }

    private void place(List<Piece> objects, Path tree) throws IOException {
        Set<Path> made = new HashSet<>();
        for (Piece object : objects) {
            Path file = tree.resolve(object.item.path());
            Path parent = file.getParent();
            if (parent != null && made.add(parent)) {
                Files.createDirectories(parent);
            }
            Files.move(object.file, file, StandardCopyOption.ATOMIC_MOVE);
            manifest.file(object.item.path(), object.sha256, object.size);
        }
    }

    /** Everything may be read by all and written by nobody, and survives a crash. */
    static void settle(Path tree) throws IOException {
        try (var found = Files.walk(tree)) {
            for (Path path : found.toList()) {
                if (Files.isDirectory(path, java.nio.file.LinkOption.NOFOLLOW_LINKS)) {
                    Disk.sync(path);
                } else if (!Files.isSymbolicLink(path)) {
                    Disk.protect(path);
                }
            }
        }
    }

    private void tell(Progress.Phase phase, boolean surely) {
        long now = shop.clock().nanos();
        long last = told.get();
        if (surely || now - last > TELL_NANOS && told.compareAndSet(last, now)) {
            progress.on(new Progress.Step(
                    phase,
                    bytes.get(),
                    listing.bytes(),
                    filesDone.get(),
                    listing.items().size()));
        }
    }
}
