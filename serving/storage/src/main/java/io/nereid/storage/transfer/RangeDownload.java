// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.transfer;

import io.nereid.storage.cache.CacheFileSystem;
import io.nereid.storage.http.HttpBody;
import io.nereid.storage.http.HttpSession;
import io.nereid.storage.object.ObjectEntry;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.Locale;
import java.util.function.LongConsumer;

/**
 * Downloads one byte range of an object into a file, with retries that resume where the last attempt ended. Confined to
 * one thread.
 */
public final class RangeDownload {
    private static final int CHUNK = 1 << 16;
    /** An attempt that received bytes resets the count of failures; this bounds the total number of attempts. */
    private static final int ENOUGH = 100;

    private final HttpSession session;
    private final CacheFileSystem disk;
    private final String what;
    private final ObjectEntry item;
    private final FileChannel file;
    private final LongConsumer arrived;
    private final LongConsumer grows;
    private final byte[] buffer = new byte[CHUNK];
    private long at;
    private boolean keyed;

    /** The store answers a range request with the whole object. */
    public static final class RangesIgnoredException extends IOException {
        private static final long serialVersionUID = 1L;

        RangesIgnoredException() {
            super("the store ignores ranges");
        }
    }

    /** The disk failed, not the store. */
    public static final class DiskFailureException extends IOException {
        private static final long serialVersionUID = 1L;

        public DiskFailureException(IOException cause) {
            super(cause.getMessage(), cause);
        }
    }

    /** A response with a status that permits a retry, such as 429 or 503. */
    private static final class Busy extends IOException {
        private static final long serialVersionUID = 1L;

        final int status;

        Busy(int status) {
            super("the store answered " + status);
            this.status = status;
        }
    }

    /**
     * Creates a range download.
     *
     * @param arrived receives the number of written bytes; a negative number when a restart discards them
     * @param grows receives the new length of an object of unknown size, before the file grows
     */
    public RangeDownload(
            HttpSession session,
            CacheFileSystem disk,
            String what,
            ObjectEntry item,
            FileChannel file,
            LongConsumer arrived,
            LongConsumer grows) {
        this.session = session;
        this.disk = disk;
        this.what = what;
        this.item = item;
        this.file = file;
        this.arrived = arrived;
        this.grows = grows;
    }

    /** Whether the store encrypted the object with KMS, so that its entity tag is not a digest of the content. */
    public boolean keyed() {
        return keyed;
    }

    /** Downloads the bytes from {@code from} to {@code to} (exclusive; -1 for the end) and returns the end position. */
    public long run(long from, long to) throws IOException {
        at = from;
        int failures = 0;
        for (int attempt = 1; ; attempt++) {
            session.cancel().check();
            long before = at;
            long wait = 0;
            IOException trouble;
            boolean whole = at == 0 && (to < 0 || to == item.size());
            try (HttpBody body = session.open(item.fetch().call(at, whole ? -1 : to))) {
                wait = HttpSession.retryAfterMillis(body.header("Retry-After"));
                check(body, to, whole);
                while (copy(body, to)) {
                    session.cancel().check();
                }
                if (to < 0 || at == to) {
                    return at;
                }
                trouble =
                        new IOException("the answer ended after " + (at - before) + " of " + (to - before) + " bytes");
            } catch (RangesIgnoredException | DiskFailureException e) {
                throw e;
            } catch (IOException e) {
                trouble = e;
            }
            session.cancel().check();
            // An attempt with progress counts as a first failure: a slow or flaky connection still completes the range.
            failures = at > before ? 1 : failures + 1;
            if (failures >= session.attempts() || attempt >= ENOUGH) {
                throw trouble instanceof Busy busy
                        ? session.failed(what, busy.status, "", null)
                        : session.unreachable(what, trouble);
            }
            // Without range requests the next attempt starts at the beginning, so the bytes of this one do not count.
            if (item.ranges() == ObjectEntry.Ranges.NONE) {
                arrived.accept(from - at);
                at = from;
            }
            session.cancel().pause(Math.max(wait, HttpSession.pauseMillis(failures)));
        }
    }

    private boolean copy(HttpBody body, long to) throws IOException {
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

    private void check(HttpBody body, long to, boolean whole) throws IOException {
        int status = body.status();
        if (HttpSession.isRetryable(status)) {
            throw new Busy(status);
        }
        // The precondition failed, the range is beyond the end, or a listed version is gone: the object has changed.
        if (status == 412 || status == 416 || status == 404 && !item.version().isEmpty()) {
            throw new ObjectChangedException(what);
        }
        if (status / 100 != 2) {
            throw session.failed(what, new HttpSession.Answer(status, body.headers(), body.all(1 << 20)));
        }
        String tag = body.header("ETag");
        if (item.tag() != null && !tag.isEmpty() && !tag.equals(item.tag())) {
            throw new ObjectChangedException(what);
        }
        keyed |= body.header("x-amz-server-side-encryption")
                .toLowerCase(Locale.ROOT)
                .contains("kms");
        if (item.ranges() == ObjectEntry.Ranges.HEADER && !whole) {
            if (status == 200) {
                throw new RangesIgnoredException();
            }
            checkRange(body.header("Content-Range"));
        }
        long length = body.length();
        if (to >= 0 && length >= 0 && length != to - at) {
            if (whole) {
                // The object's length differs from the listing.
                throw new ObjectChangedException(what);
            }
            throw new IOException("the answer has " + length + " bytes instead of " + (to - at));
        }
    }

    private void checkRange(String range) throws IOException {
        if (!range.startsWith("bytes " + at + "-")) {
            throw new IOException("asked for bytes from " + at + ", the answer has '" + range + "'");
        }
        int slash = range.indexOf('/');
        String total = slash < 0 ? "*" : range.substring(slash + 1);
        if (item.size() >= 0 && !total.equals("*") && !total.equals(String.valueOf(item.size()))) {
            throw new ObjectChangedException(what);
        }
    }
}
