// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.transfer;

import io.nereid.storage.cache.CacheFileSystem;
import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.ObjectEntry;
import io.nereid.storage.spi.ObjectStream;
import io.nereid.storage.spi.RangesIgnoredException;
import io.nereid.storage.spi.RetryPolicy;
import io.nereid.storage.spi.StorageContext;
import io.nereid.storage.spi.StoreBusyException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.function.LongConsumer;

/**
 * Downloads one byte range of an object into a file, with retries that resume where the last attempt ended. Confined to
 * one thread.
 */
public final class RangeDownload {
    private static final int CHUNK = 1 << 16;
    /** An attempt that received bytes resets the count of failures; this bounds the total number of attempts. */
    private static final int ENOUGH = 100;

    private final StorageContext context;
    private final CancellationToken cancel;
    private final CacheFileSystem disk;
    private final String what;
    private final ObjectEntry item;
    private final FileChannel file;
    private final LongConsumer arrived;
    private final LongConsumer grows;
    private final byte[] buffer = new byte[CHUNK];
    private long at;
    private boolean opaqueTag;

    /** The disk failed, not the store. */
    public static final class DiskFailureException extends IOException {
        private static final long serialVersionUID = 1L;

        public DiskFailureException(IOException cause) {
            super(cause.getMessage(), cause);
        }
    }

    /**
     * Creates a range download.
     *
     * @param context of the fetch, for its retries and failures
     * @param cancel ends the download
     * @param arrived receives the number of written bytes; a negative number when a restart discards them
     * @param grows receives the new length of an object of unknown size, before the file grows
     */
    public RangeDownload(
            StorageContext context,
            CancellationToken cancel,
            CacheFileSystem disk,
            String what,
            ObjectEntry item,
            FileChannel file,
            LongConsumer arrived,
            LongConsumer grows) {
        this.context = context;
        this.cancel = cancel;
        this.disk = disk;
        this.what = what;
        this.item = item;
        this.file = file;
        this.arrived = arrived;
        this.grows = grows;
    }

    /** Whether the store says that the object's entity tag is not a digest of the content. */
    public boolean opaqueTag() {
        return opaqueTag;
    }

    /** Downloads the bytes from {@code from} to {@code to} (exclusive; -1 for the end) and returns the end position. */
    public long run(long from, long to) throws IOException {
        at = from;
        int failures = 0;
        for (int attempt = 1; ; attempt++) {
            cancel.check();
            long before = at;
            long wait = 0;
            IOException trouble;
            boolean whole = at == 0 && (to < 0 || to == item.size());
            try (ObjectStream body = item.reader().open(at, whole ? -1 : to, cancel)) {
                opaqueTag |= body.opaqueTag();
                if (copyAll(body, to)) {
                    return at;
                }
                trouble =
                        new IOException("the answer ended after " + (at - before) + " of " + (to - before) + " bytes");
            } catch (RangesIgnoredException | DiskFailureException e) {
                throw e;
            } catch (StoreBusyException e) {
                wait = e.retryAfterMillis();
                trouble = e;
            } catch (IOException e) {
                trouble = e;
            }
            cancel.check();
            // An attempt with progress counts as a first failure: a slow or flaky connection still completes the range.
            failures = at > before ? 1 : failures + 1;
            if (failures >= context.retries().attempts() || attempt >= ENOUGH) {
                throw trouble instanceof StoreBusyException busy
                        ? busy.failure()
                        : context.failures().unreachable(what, trouble);
            }
            // Without range requests the next attempt starts at the beginning, so the bytes of this one do not count.
            if (!item.ranges()) {
                arrived.accept(from - at);
                at = from;
            }
            cancel.pause(Math.max(wait, RetryPolicy.pauseMillis(failures)));
        }
    }

    /** Copies until the end; false when the stream ends before it. A cancellation closes the stream. */
    private boolean copyAll(ObjectStream body, long to) throws IOException {
        Runnable ending = body::close;
        cancel.add(ending);
        try {
            while (copy(body, to)) {
                cancel.check();
            }
        } finally {
            cancel.remove(ending);
        }
        return to < 0 || at == to;
    }

    private boolean copy(ObjectStream body, long to) throws IOException {
        int limit = to < 0 ? CHUNK : (int) Math.min(CHUNK, to - at);
        if (limit == 0) {
            return false;
        }
        int n = body.read(buffer, limit);
        if (n < 0) {
            return false;
        }
        if (item.size() < 0) {
            grows.accept(at + n);
        }
        try {
            disk.write(file, ByteBuffer.wrap(buffer, 0, n), at);
        } catch (IOException e) {
            throw new DiskFailureException(e);
        }
        at += n;
        arrived.accept(n);
        return true;
    }
}
