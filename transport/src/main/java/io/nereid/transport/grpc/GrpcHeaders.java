// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.grpc;

import io.nereid.base.ErrorCode;
import io.nereid.transport.routing.PercentEncoding;
import io.netty.handler.codec.http2.DefaultHttp2Headers;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.codec.http2.ReadOnlyHttp2Headers;
import io.netty.util.AsciiString;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Response headers and status trailers of gRPC, and the conversion of {@code grpc-timeout} and {@code grpc-message}.
 * Holds no mutable state.
 */
public final class GrpcHeaders {
    /** Tells clients after how many milliseconds a retry may succeed (gRPC's retry design, "server pushback"). */
    public static final AsciiString RETRY_PUSHBACK = AsciiString.cached("grpc-retry-pushback-ms");

    private static final AsciiString CONTENT_TYPE = AsciiString.cached("content-type");
    private static final AsciiString GRPC = AsciiString.cached("application/grpc");
    private static final AsciiString STATUS = AsciiString.cached("grpc-status");
    private static final AsciiString MESSAGE = AsciiString.cached("grpc-message");
    private static final AsciiString ENCODING = AsciiString.cached("grpc-encoding");
    private static final AsciiString ACCEPT_ENCODING = AsciiString.cached("grpc-accept-encoding");
    private static final AsciiString OK = AsciiString.cached("200");
    private static final int MAX_MESSAGE_CHARS = 4096;

    /** The response headers. */
    public static final Http2Headers RESPONSE = ReadOnlyHttp2Headers.serverHeaders(false, OK, CONTENT_TYPE, GRPC);

    /** The response headers of a call whose messages may be compressed. */
    public static final Http2Headers GZIP_RESPONSE =
            ReadOnlyHttp2Headers.serverHeaders(false, OK, CONTENT_TYPE, GRPC, ENCODING, AsciiString.cached("gzip"));

    /** The trailers of a successful call. */
    public static final Http2Headers TRAILERS_OK =
            ReadOnlyHttp2Headers.trailers(false, STATUS, AsciiString.cached("0"));

    private GrpcHeaders() {}

    /**
     * The trailers of a call.
     *
     * @param alone whether nothing was sent before them, so that they are a "Trailers-Only" response with {@code
     *     :status}
     * @param listEncodings whether to add {@code grpc-accept-encoding}, as for an unsupported request encoding
     */
    public static Http2Headers end(ErrorCode code, @Nullable String message, boolean alone, boolean listEncodings) {
        if (code == ErrorCode.OK && message == null && !alone) {
            return TRAILERS_OK;
        }
        Http2Headers headers = new DefaultHttp2Headers(false, 6);
        if (alone) {
            headers.status(OK);
            headers.add(CONTENT_TYPE, GRPC);
        }
        headers.add(STATUS, Integer.toString(code.number()));
        if (message != null) {
            String text =
                    message.length() <= MAX_MESSAGE_CHARS ? message : message.substring(0, MAX_MESSAGE_CHARS) + "…";
            headers.add(MESSAGE, PercentEncoding.encode(text));
        }
        if (listEncodings) {
            headers.add(ACCEPT_ENCODING, "identity,deflate,gzip");
        }
        return headers;
    }

    /** A duration as a {@code grpc-timeout} value, in the finest unit for which eight digits suffice. */
    public static String timeout(long nanos) {
        long n = nanos;
        if (n < 100_000_000L) {
            return n + "n";
        }
        n /= 1000;
        if (n < 100_000_000L) {
            return n + "u";
        }
        n /= 1000;
        if (n < 100_000_000L) {
            return n + "m";
        }
        n /= 1000;
        return n < 100_000_000L ? n + "S" : Math.min(99_999_999L, n / 3600) + "H";
    }

    /** The text of a {@code grpc-message} value; unchanged when its percent-encoding is malformed. */
    public static String message(String value) {
        try {
            return PercentEncoding.decode(value, false);
        } catch (io.nereid.base.ServingException e) {
            return value;
        }
    }

    /** Nanoseconds of a {@code grpc-timeout} value; -1 when malformed. */
    public static long timeoutNanos(CharSequence value) {
        int digits = value.length() - 1;
        if (digits < 1 || digits > 8) {
            return -1;
        }
        long n = 0;
        for (int i = 0; i < digits; i++) {
            char c = value.charAt(i);
            if (c < '0' || c > '9') {
                return -1;
            }
            n = n * 10 + c - '0';
        }
        return switch (value.charAt(digits)) {
            case 'n' -> n;
            case 'u' -> TimeUnit.MICROSECONDS.toNanos(n);
            case 'm' -> TimeUnit.MILLISECONDS.toNanos(n);
            case 'S' -> TimeUnit.SECONDS.toNanos(n);
            case 'M' -> TimeUnit.MINUTES.toNanos(n);
            case 'H' -> TimeUnit.HOURS.toNanos(n);
            default -> -1;
        };
    }
}
