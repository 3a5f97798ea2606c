// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import java.io.IOException;
import java.io.InputStream;
import java.net.http.HttpHeaders;

/**
 * An answer whose bytes are read as they arrive. One thread reads; any may close, which makes the reader fail.
 */
final class HttpBody implements AutoCloseable {
    private final Http http;
    private final Cancel cancel;
    private final Runnable ending = this::close;
    private final InputStream in;
    private final long idleNanos;
    private final int status;
    private final HttpHeaders headers;
    private volatile long lastNanos;
    private volatile boolean idle;

    HttpBody(Http http, Cancel cancel, int status, HttpHeaders headers, InputStream in, long idleNanos) {
        this.http = http;
        this.cancel = cancel;
        this.status = status;
        this.headers = headers;
        this.in = in;
        this.idleNanos = idleNanos;
        this.lastNanos = http.clock.nanos();
    }

    /** Begins the watch; not in the constructor, which would show itself before it is whole. */
    HttpBody watched() {
        http.watch(this);
        cancel.add(ending);
        return this;
    }

    int status() {
        return status;
    }

    String header(String name) {
        return headers.firstValue(name).orElse("");
    }

    HttpHeaders headers() {
        return headers;
    }

    /** The length that the answer says it has, or -1. */
    long length() {
        return headers.firstValueAsLong("Content-Length").orElse(-1);
    }

    /** As {@link InputStream#read(byte[])}. */
    int read(byte[] buffer, int limit) throws IOException {
        try {
            int n = in.read(buffer, 0, limit);
            lastNanos = http.clock.nanos();
            return n;
        } catch (IOException e) {
            if (idle) {
                throw new IOException("nothing arrived for " + idleNanos / 1_000_000 + " ms", e);
            }
            throw e;
        }
    }

    /** All of it, refusing more than {@code most} bytes. */
    byte[] all(int most) throws IOException {
        var all = new java.io.ByteArrayOutputStream();
        byte[] buffer = new byte[1 << 14];
        for (int n = read(buffer, buffer.length); n >= 0; n = read(buffer, buffer.length)) {
            all.write(buffer, 0, n);
            if (all.size() > most) {
                throw new IOException("the answer has more than " + most + " bytes");
            }
        }
        return all.toByteArray();
    }

    void endIfIdle(long now) {
        if (now - lastNanos > idleNanos) {
            idle = true;
            close();
        }
    }

    @Override
    public void close() {
        http.forget(this);
        cancel.remove(ending);
        try {
            in.close();
        } catch (IOException e) {
            // Nothing more is wanted from it.
        }
    }
}
