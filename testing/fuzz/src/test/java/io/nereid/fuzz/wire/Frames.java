// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.wire;

import io.netty.buffer.Unpooled;
import io.netty.handler.codec.http2.DefaultHttp2HeadersDecoder;
import io.netty.handler.codec.http2.Http2Exception;
import io.netty.handler.codec.http2.Http2Headers;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** Frames of HTTP/2, written and read. Stateless. */
final class Frames {
    static final int DATA = 0;
    static final int HEADERS = 1;
    static final int END_STREAM = 1;
    static final int END_HEADERS = 4;
    private static final byte[] PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".getBytes(StandardCharsets.US_ASCII);

    /** A frame as received. */
    record Frame(int type, int flags, int stream, byte[] payload) {}

    private Frames() {}

    static byte[] frame(int type, int flags, int stream, byte[] payload) {
        byte[] frame = new byte[9 + payload.length];
        frame[0] = (byte) (payload.length >> 16);
        frame[1] = (byte) (payload.length >> 8);
        frame[2] = (byte) payload.length;
        frame[3] = (byte) type;
        frame[4] = (byte) flags;
        frame[5] = (byte) (stream >> 24);
        frame[6] = (byte) (stream >> 16);
        frame[7] = (byte) (stream >> 8);
        frame[8] = (byte) stream;
        System.arraycopy(payload, 0, frame, 9, payload.length);
        return frame;
    }

    /** The preface and the first SETTINGS of a client. */
    static byte[] opening() {
        return WireServer.join(PREFACE, frame(4, 0, 0, new byte[0]));
    }

    /** A header block of names and values, none of which is compressed. */
    static byte[] block(List<String> headers) {
        ByteArrayOutputStream block = new ByteArrayOutputStream();
        for (int i = 0; i < headers.size(); i++) {
            if (i % 2 == 0) {
                block.write(0);
            }
            block.write(headers.get(i).length());
            block.writeBytes(headers.get(i).getBytes(StandardCharsets.ISO_8859_1));
        }
        return block.toByteArray();
    }

    /** The frames that the server sent; bytes that are not whole frames are an {@link AssertionError}. */
    static List<Frame> read(byte[] bytes) {
        List<Frame> all = new ArrayList<>();
        int at = 0;
        while (at < bytes.length) {
            if (bytes.length - at < 9) {
                throw new AssertionError("the server sends a part of a frame");
            }
            int length = (bytes[at] & 255) << 16 | (bytes[at + 1] & 255) << 8 | bytes[at + 2] & 255;
            if (length > bytes.length - at - 9) {
                throw new AssertionError("the server sends a part of a frame");
            }
            int stream = (bytes[at + 5] & 127) << 24
                    | (bytes[at + 6] & 255) << 16
                    | (bytes[at + 7] & 255) << 8
                    | bytes[at + 8] & 255;
            all.add(new Frame(
                    bytes[at + 3], bytes[at + 4], stream, Arrays.copyOfRange(bytes, at + 9, at + 9 + length)));
            at += 9 + length;
        }
        return all;
    }

    /** Checks the header blocks: they decode, and no response is a 500 or an INTERNAL; returns the DATA of stream 1. */
    static byte[] checked(byte[] bytes) {
        ByteArrayOutputStream data = new ByteArrayOutputStream();
        DefaultHttp2HeadersDecoder decoder = new DefaultHttp2HeadersDecoder(false, 1 << 20);
        for (Frame frame : read(bytes)) {
            if (frame.type == DATA && frame.stream == 1) {
                data.writeBytes(frame.payload);
            } else if (frame.type == HEADERS && (frame.flags & END_HEADERS) != 0) {
                Http2Headers headers;
                try {
                    headers = decoder.decodeHeaders(frame.stream, Unpooled.wrappedBuffer(frame.payload));
                } catch (Http2Exception e) {
                    throw new AssertionError("the server sends a header block that cannot be decoded", e);
                }
                for (Map.Entry<CharSequence, CharSequence> header : headers) {
                    String name = header.getKey().toString();
                    String value = header.getValue().toString();
                    if (name.equals(":status") && value.equals("500")
                            || name.equals("grpc-status") && (value.equals("13") || value.equals("2"))) {
                        throw new AssertionError("a request makes the server fail: " + headers);
                    }
                    if (value.chars().anyMatch(c -> c == '\r' || c == '\n' || c == 0)) {
                        throw new AssertionError("the server sends control characters: " + headers);
                    }
                }
            }
        }
        return data.toByteArray();
    }
}
