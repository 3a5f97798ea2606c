// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.Locale;
import java.util.function.LongConsumer;

/** Brings one part of an object into a file, as often as it takes. Used by one thread. */
final class Transfer {
    private static final int CHUNK = 1 << 16;
    /** Attempts that brought something do not count against the attempts, but there is an end to it. */
    private static final int ENOUGH = 100;

    private final HttpSession session;
    private final Disk disk;
    private final String what;
    private final Item item;
    private final FileChannel file;
    private final LongConsumer arrived;
    private final LongConsumer grows;
    private final byte[] buffer = new byte[CHUNK];
    private long at;
    private boolean keyed;

    /** The store answers requests for parts with everything. */
    static final class NoRanges extends IOException {
        private static final long serialVersionUID = 1L;

        NoRanges() {
            super("the store ignores ranges");
        }
    }

    /** The disk failed, not the store. */
    static final class DiskFailure extends IOException {
        private static final long serialVersionUID = 1L;

        DiskFailure(IOException cause) {
            super(cause.getMessage(), cause);
        }
    }

    /** The store asks for patience. */
    private static final class Busy extends IOException {
        private static final long serialVersionUID = 1L;

        final int status;

        Busy(int status) {
            super("the store answered " + status);
            this.status = status;
        }
    }

    /**
     * A transfer.
     *
     * @param arrived told how many bytes came; negative when they are taken back
     * @param grows told how long a file of unknown length is to become, before it does
     */
    Transfer(
            HttpSession session,
            Disk disk,
            String what,
            Item item,
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

    /** Whether the store encrypted the object with a key of its own, so that entity tags are no digests. */
    boolean keyed() {
        return keyed;
    }

    /** Brings bytes {@code from} to before {@code to}, -1 for the end; returns where it ended. */
    long run(long from, long to) throws IOException {
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
            } catch (NoRanges | DiskFailure e) {
                throw e;
            } catch (IOException e) {
                trouble = e;
            }
            session.cancel().check();
            failures = at > before ? 1 : failures + 1;
            if (failures >= session.attempts() || attempt >= ENOUGH) {
                throw trouble instanceof Busy busy
                        ? session.failed(what, busy.status, "", null)
                        : session.unreachable(what, trouble);
            }
            if (item.ranges() == Item.Ranges.NONE) {
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
            throw new DiskFailure(e);
        }
        at += n;
        arrived.accept(n);
        return true;
    }

    private void check(HttpBody body, long to, boolean whole) throws IOException {
        int status = body.status();
        if (HttpSession.passing(status)) {
            throw new Busy(status);
        }
        if (status == 412 || status == 416 || status == 404 && !item.version().isEmpty()) {
            throw new Changed(what);
        }
        if (status / 100 != 2) {
            throw session.failed(what, new HttpSession.Answer(status, body.headers(), body.all(1 << 20)));
        }
        String tag = body.header("ETag");
        if (item.tag() != null && !tag.isEmpty() && !tag.equals(item.tag())) {
            throw new Changed(what);
        }
        keyed |= body.header("x-amz-server-side-encryption")
                .toLowerCase(Locale.ROOT)
                .contains("kms");
        if (item.ranges() == Item.Ranges.HEADER && !whole) {
            if (status == 200) {
                throw new NoRanges();
            }
            checkRange(body.header("Content-Range"));
        }
        long length = body.length();
        if (to >= 0 && length >= 0 && length != to - at) {
            if (whole) {
                // The object has another length than the listing said.
                throw new Changed(what);
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
            throw new Changed(what);
        }
    }
}
