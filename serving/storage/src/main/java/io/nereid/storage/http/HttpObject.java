// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.http;

import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.Checksum;
import io.nereid.storage.spi.ObjectChangedException;
import io.nereid.storage.spi.ObjectEntry;
import io.nereid.storage.spi.ObjectStream;
import io.nereid.storage.spi.RangesIgnoredException;
import io.nereid.storage.spi.StorageFailures;
import io.nereid.storage.spi.StoreBusyException;
import java.io.IOException;
import org.jspecify.annotations.Nullable;

/**
 * An object of a store that is read over HTTP. Immutable.
 *
 * @param path relative to the listed URI, with slashes
 * @param size in bytes, or -1 if unknown
 * @param version identifies the content; empty if the store does not give one
 * @param tag the entity tag that every response must have, or null if it is not checked
 * @param checksum the expected checksum of the content, or null if the store does not give one
 * @param ranges how byte ranges are requested
 * @param fetch makes the requests
 */
public record HttpObject(
        String path,
        long size,
        String version,
        @Nullable String tag,
        @Nullable Checksum checksum,
        Ranges ranges,
        Fetch fetch) {

    /** How byte ranges are requested. */
    public enum Ranges {
        /** Not supported. */
        NONE,
        /** With the Range header; the response has status 206. */
        HEADER,
        /** With query parameters; the response has status 200. */
        QUERY
    }

    /** Makes the request for the bytes from {@code from} to {@code to} (exclusive; -1 for the end). */
    @FunctionalInterface
    public interface Fetch {
        HttpCall call(long from, long to);
    }

    /**
     * The entry of a listing, which reads the object with a session.
     *
     * @param uri the listed URI, without secrets
     */
    public ObjectEntry entry(HttpSession session, String uri) {
        String what = uri + " (" + path + ")";
        return new ObjectEntry(
                path,
                size,
                version,
                checksum,
                ranges != Ranges.NONE,
                (from, to, cancel) -> open(session, what, from, to, cancel));
    }

    private ObjectStream open(HttpSession session, String what, long from, long to, CancellationToken cancel)
            throws IOException {
        cancel.check();
        session.follow(cancel);
        HttpBody body = session.open(fetch.call(from, to));
        boolean valid = false;
        try {
            check(session, what, body, from, to);
            valid = true;
            return body;
        } finally {
            if (!valid) {
                body.close();
            }
        }
    }

    private void check(HttpSession session, String what, HttpBody body, long from, long to) throws IOException {
        int status = body.status();
        if (StorageFailures.isRetryable(status)) {
            throw new StoreBusyException(
                    session.failed(what, status, "", null), HttpSession.retryAfterMillis(body.header("Retry-After")));
        }
        // The precondition failed, the range is beyond the end, or a listed version is gone: the object has changed.
        if (status == 412 || status == 416 || status == 404 && !version.isEmpty()) {
            throw new ObjectChangedException(what);
        }
        if (status / 100 != 2) {
            throw session.failed(what, new HttpSession.Answer(status, body.headers(), body.all(1 << 20)));
        }
        String found = body.header("ETag");
        if (tag != null && !found.isEmpty() && !found.equals(tag)) {
            throw new ObjectChangedException(what);
        }
        boolean whole = from == 0 && to < 0;
        if (ranges == Ranges.HEADER && !whole) {
            if (status == 200) {
                throw new RangesIgnoredException();
            }
            checkRange(what, body.header("Content-Range"), from);
        }
        long end = to < 0 ? size : to;
        long length = body.length();
        if (end >= 0 && length >= 0 && length != end - from) {
            if (whole) {
                // The object's length differs from the listing.
                throw new ObjectChangedException(what);
            }
            throw new IOException("the answer has " + length + " bytes instead of " + (end - from));
        }
    }

    private void checkRange(String what, String range, long from) throws IOException {
        if (!range.startsWith("bytes " + from + "-")) {
            throw new IOException("asked for bytes from " + from + ", the answer has '" + range + "'");
        }
        int slash = range.indexOf('/');
        String total = slash < 0 ? "*" : range.substring(slash + 1);
        if (size >= 0 && !total.equals("*") && !total.equals(String.valueOf(size))) {
            throw new ObjectChangedException(what);
        }
    }
}
