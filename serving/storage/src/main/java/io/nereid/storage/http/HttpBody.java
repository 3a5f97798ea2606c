// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.http;

import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.ObjectStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.http.HttpHeaders;
import java.util.Locale;

/**
 * A streamed response body. Thread-safe: one thread reads, any thread may close, which makes the read fail.
 */
public final class HttpBody implements ObjectStream {
    private final HttpClients http;
    private final CancellationToken cancel;
    private final Runnable ending = this::close;
    private final InputStream in;
    private final long idleNanos;
    private final int status;
    private final HttpHeaders headers;
    private volatile long lastNanos;
    private volatile boolean idle;

    HttpBody(
            HttpClients http,
            CancellationToken cancel,
            int status,
            HttpHeaders headers,
            InputStream in,
            long idleNanos) {
        this.http = http;
        this.cancel = cancel;
        this.status = status;
        this.headers = headers;
        this.in = in;
        this.idleNanos = idleNanos;
        this.lastNanos = http.clock.nanos();
    }

    /**
     * Starts the idle timeout and registers for cancellation. Not in the constructor, so that {@code this} does not
     * escape.
     */
    HttpBody watched() {
        http.watch(this);
        cancel.add(ending);
        return this;
    }

    public int status() {
        return status;
    }

    public String header(String name) {
        return headers.firstValue(name).orElse("");
    }

    public HttpHeaders headers() {
        return headers;
    }

    /** The Content-Length, or -1. */
    public long length() {
        return headers.firstValueAsLong("Content-Length").orElse(-1);
    }

    @Override
    public int read(byte[] buffer, int limit) throws IOException {
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

    @Override
    public boolean opaqueTag() {
        return header("x-amz-server-side-encryption").toLowerCase(Locale.ROOT).contains("kms");
    }

    /** Reads the whole body; fails if it has more than {@code most} bytes. */
    public byte[] all(int most) throws IOException {
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
            // The body is discarded, so a failure to close it does not matter.
        }
    }
}
