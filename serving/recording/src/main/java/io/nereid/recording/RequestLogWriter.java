// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.recording;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.Threads;
import io.nereid.recording.RequestLogger.LogCount;
import io.nereid.recording.RequestLogger.Target;
import io.nereid.spi.InferenceRequest;
import io.nereid.tensor.ByteBudget;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes logged requests to files: a bounded queue, and one thread that encodes and writes. {@link #add},
 * {@link #completeFiles} and {@link #counts} are thread-safe; {@link #keep} and {@link #close} are called by one thread
 * at a time. The files are confined to the writing thread.
 *
 * <p>After a disk error, the records of that file prefix are dropped for {@code retryAfter}; then one record is written
 * as a trial.
 */
final class RequestLogWriter {
    private static final Logger LOG = LoggerFactory.getLogger(RequestLogWriter.class);
    private static final DateTimeFormatter START =
            DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'", Locale.ROOT).withZone(ZoneOffset.UTC);
    private static final long CLOSE_SECONDS = 10;
    private static final long IDLE_MILLIS = 500;

    /** A queued record or command for the writing thread. */
    sealed interface Item {}

    /** A logged request; owns its tensors. */
    record Entry(Target target, InferenceRequest request, List<Tensor> inputs, List<Tensor> outputs, long version)
            implements Item {
        void release() {
            Tensor.closeAll(inputs);
            Tensor.closeAll(outputs);
        }

        /**
         * Returns the memory that stays in use while this is queued: the complete regions, even if a tensor uses only a
         * part of one.
         */
        long bytes() {
            long bytes = 0;
            IdentityHashMap<MemoryRegion, Boolean> seen = new IdentityHashMap<>();
            for (List<Tensor> tensors : List.of(inputs, outputs)) {
                for (Tensor tensor : tensors) {
                    if (seen.put(tensor.region(), true) == null) {
                        bytes += tensor.region().size();
                    }
                }
            }
            return bytes;
        }
    }

    private record Waiting(Entry entry, long bytes) implements Item {}

    /** Command: write only to files with these prefixes from now on, and complete all others. */
    private record Keep(Set<String> prefixes) implements Item {}

    /** Command: complete all files. */
    private record Complete(CompletableFuture<Void> done, boolean last) implements Item {}

    /** A disk error of the files with one prefix. Confined to the writing thread. */
    private static final class Outage {
        private long retryNanos;
        private long lost;
    }

    private final Clock clock;
    private final RequestLoggerOptions options;
    private final RequestLogFile.Opener opener;
    private final String start;
    private final BlockingQueue<Item> queue = new LinkedBlockingQueue<>();
    private final Semaphore queueSlots;
    private final ByteBudget budget;
    private final Map<String, Map<ErrorCode, LongAdder>> counts = new ConcurrentHashMap<>();
    private final CountDownLatch ended = new CountDownLatch(1);
    private volatile boolean closed;

    @GuardedBy("this") private @Nullable Thread thread;

    // confined to the writing thread
    private final PredictionLogEncoder encoder = new PredictionLogEncoder();
    private final Map<String, RequestLogFile> files = new HashMap<>();
    private final Map<String, Integer> numbers = new HashMap<>();
    private final Map<String, Outage> outages = new HashMap<>();
    private Set<String> prefixes = Set.of();

    RequestLogWriter(Clock clock, RequestLoggerOptions options, RequestLogFile.Opener opener) {
        this.clock = clock;
        this.options = options;
        this.opener = opener;
        this.queueSlots = new Semaphore(options.maxQueued());
        this.budget = new ByteBudget(options.maxQueuedBytes());
        this.start = START.format(Instant.ofEpochMilli(clock.millis()));
    }

    /** Queues an entry, whose ownership is transferred; drops and counts it if the queue is full. */
    void add(Entry entry) {
        if (closed || !queueSlots.tryAcquire()) {
            drop(entry);
            return;
        }
        long bytes = entry.bytes();
        if (!budget.tryReserve(bytes)) {
            queueSlots.release();
            drop(entry);
            return;
        }
        queue.add(new Waiting(entry, bytes));
        if (closed && ended.getCount() == 0) {
            discardAll(); // the writing thread has ended and will not do it
        }
    }

    private void drop(Entry entry) {
        count(entry.target(), ErrorCode.RESOURCE_EXHAUSTED);
        entry.release();
    }

    private void count(Target target, ErrorCode code) {
        counts.computeIfAbsent(target.model(), m -> {
                    Map<ErrorCode, LongAdder> each = new EnumMap<>(ErrorCode.class);
                    for (ErrorCode c : List.of(
                            ErrorCode.OK, ErrorCode.RESOURCE_EXHAUSTED, ErrorCode.UNAVAILABLE, ErrorCode.INTERNAL)) {
                        each.put(c, new LongAdder());
                    }
                    return Collections.unmodifiableMap(each);
                })
                .getOrDefault(code, new LongAdder())
                .increment();
    }

    List<LogCount> counts() {
        List<LogCount> all = new ArrayList<>();
        counts.forEach((model, each) -> each.forEach((code, count) -> {
            if (count.sum() > 0) {
                all.add(new LogCount(model, code, count.sum()));
            }
        }));
        return all;
    }

    @GuardedBy("this")
    void keep(Collection<Target> targets) {
        if (closed || thread == null && targets.isEmpty()) {
            return;
        }
        Set<String> wanted = new HashSet<>();
        targets.forEach(target -> wanted.add(target.prefix()));
        queue.add(new Keep(Set.copyOf(wanted)));
        if (thread == null) {
            Thread writer = Threads.named("nereid-recorder").newThread(this::run);
            thread = writer;
            writer.start();
        }
    }

    CompletableFuture<Void> completeFiles() {
        CompletableFuture<Void> done = new CompletableFuture<>();
        synchronized (this) {
            if (closed || thread == null) {
                done.complete(null);
            } else {
                queue.add(new Complete(done, false));
            }
        }
        return done;
    }

    @GuardedBy("this")
    void close() {
        if (closed) {
            return;
        }
        closed = true;
        if (thread != null) {
            queue.add(new Complete(new CompletableFuture<>(), true));
            try {
                if (!ended.await(CLOSE_SECONDS, TimeUnit.SECONDS)) {
                    LOG.warn("logged requests are still being written after {} s", CLOSE_SECONDS);
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    // ---- the writing thread

    private void run() {
        try {
            while (step()) {
                // until closed
            }
        } catch (InterruptedException e) {
            LOG.warn("request logging was interrupted");
        } finally {
            closed = true;
            ended.countDown();
            discardAll();
        }
    }

    private boolean step() throws InterruptedException {
        Item item = queue.poll();
        if (item == null) {
            flush();
            item = queue.poll(IDLE_MILLIS, TimeUnit.MILLISECONDS);
        }
        if (item instanceof Waiting waiting) {
            try {
                write(waiting.entry());
            } finally {
                waiting.entry().release();
                budget.release(waiting.bytes());
                queueSlots.release();
            }
        } else if (item instanceof Keep keep) {
            prefixes = keep.prefixes();
            outages.keySet().retainAll(prefixes);
            complete(false);
        } else if (item instanceof Complete all) {
            complete(true);
            all.done().complete(null);
            return !all.last();
        }
        completeOld();
        return true;
    }

    private void write(Entry entry) {
        Target target = entry.target();
        if (!prefixes.contains(target.prefix())) {
            return; // was in progress when logging of its model was switched off
        }
        Outage outage = outages.get(target.prefix());
        if (outage != null && clock.nanos() - outage.retryNanos < 0) {
            outage.lost++;
            count(target, ErrorCode.UNAVAILABLE);
            return;
        }
        int length;
        try {
            length = encoder.encode(entry, clock.millis() / 1000);
        } catch (RuntimeException e) {
            LOG.error("a request to model '{}' cannot be encoded for the request log", target.model(), e);
            count(target, ErrorCode.INTERNAL);
            return;
        }
        try {
            RequestLogFile file = files.get(target.prefix());
            if (file == null) {
                file = open(target.prefix());
            }
            file.write(encoder.array(), length);
            if (outage != null) {
                file.flush(); // only data on the disk proves that the error is gone
                outages.remove(target.prefix());
                LOG.info("request logging to '{}' works again; {} requests are missing", target.prefix(), outage.lost);
            }
            count(target, ErrorCode.OK);
            if (file.records() >= options.maxFileRecords() || file.bytes() >= options.maxFileBytes()) {
                files.remove(target.prefix());
                file.complete();
            }
        } catch (IOException e) {
            failed(target.prefix(), e).lost++;
            count(target, ErrorCode.UNAVAILABLE);
        }
    }

    private RequestLogFile open(String prefix) throws IOException {
        int number = numbers.merge(prefix, 1, Integer::sum) - 1;
        RequestLogFile file = null;
        while (file == null) {
            try {
                file = opener.open(prefix + "-" + start + "-" + number + ".tfrecord", clock.nanos());
            } catch (FileAlreadyExistsException e) {
                number = numbers.merge(prefix, 1, Integer::sum) - 1; // of another server, or of an earlier start
            } catch (IOException e) {
                numbers.put(prefix, number);
                throw e;
            }
        }
        files.put(prefix, file);
        return file;
    }

    /**
     * Closes a file after an error, since its last record may be incomplete; records that were flushed before remain.
     */
    private Outage failed(String prefix, IOException e) {
        Outage outage = outages.get(prefix);
        if (outage == null) {
            outage = new Outage();
            outages.put(prefix, outage);
            LOG.warn("request logging to '{}' fails; requests are dropped until it works: {}", prefix, e.toString());
        }
        outage.retryNanos = clock.nanos() + options.retryAfter().toNanos();
        RequestLogFile file = files.remove(prefix);
        if (file != null) {
            file.abandon();
        }
        return outage;
    }

    private void flush() {
        for (Map.Entry<String, RequestLogFile> each : List.copyOf(files.entrySet())) {
            try {
                each.getValue().flush();
            } catch (IOException e) {
                failed(each.getKey(), e);
            }
        }
    }

    private void completeOld() {
        if (files.isEmpty()) {
            return;
        }
        long now = clock.nanos();
        for (Map.Entry<String, RequestLogFile> each : List.copyOf(files.entrySet())) {
            if (now - each.getValue().openedNanos() >= options.maxFileAge().toNanos()) {
                complete(each.getKey());
            }
        }
    }

    private void complete(boolean all) {
        for (String prefix : List.copyOf(files.keySet())) {
            if (all || !prefixes.contains(prefix)) {
                complete(prefix);
            }
        }
    }

    private void complete(String prefix) {
        RequestLogFile file = files.get(prefix);
        if (file != null) {
            try {
                file.complete();
                files.remove(prefix);
            } catch (IOException e) {
                failed(prefix, e);
            }
        }
    }

    private void discardAll() {
        for (Item item = queue.poll(); item != null; item = queue.poll()) {
            if (item instanceof Waiting waiting) {
                drop(waiting.entry());
                budget.release(waiting.bytes());
            } else if (item instanceof Complete all) {
                all.done().complete(null);
            }
        }
    }
}
