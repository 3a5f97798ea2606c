// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.netty.buffer.Unpooled;
import io.netty.handler.codec.http2.DefaultHttp2HeadersDecoder;
import io.netty.handler.codec.http2.Http2Headers;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** An HTTP/2 connection that sends the frames it is given and nothing else, window updates included. */
final class RawH2 implements AutoCloseable {
    static final int DATA = 0;
    static final int HEADERS = 1;
    static final int RESET = 3;
    static final int SETTINGS = 4;
    static final int PING = 6;
    static final int END_STREAM = 1;

    private static final int END_HEADERS = 4;
    private static final int INITIAL_WINDOW = 4;

    final Socket socket = new Socket();
    private final DataInputStream in;
    private final DefaultHttp2HeadersDecoder decoder = new DefaultHttp2HeadersDecoder(false);

    /** A frame as received. */
    record Frame(int type, int flags, int stream, byte[] payload) {}

    RawH2(int port, int initialWindow) throws IOException {
        socket.connect(new InetSocketAddress("127.0.0.1", port));
        socket.setSoTimeout(20_000);
        socket.setTcpNoDelay(true);
        in = new DataInputStream(socket.getInputStream());
        socket.getOutputStream().write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
        send(
                SETTINGS,
                0,
                0,
                ByteBuffer.allocate(6)
                        .putShort((short) INITIAL_WINDOW)
                        .putInt(initialWindow)
                        .array());
    }

    RawH2 send(int type, int flags, int stream, byte[] payload) throws IOException {
        ByteBuffer frame = ByteBuffer.allocate(9 + payload.length);
        frame.put((byte) (payload.length >> 16)).putShort((short) payload.length);
        frame.put((byte) type).put((byte) flags).putInt(stream).put(payload);
        socket.getOutputStream().write(frame.array());
        return this;
    }

    /** Begins a request. */
    RawH2 headers(int stream, boolean end, String... namesAndValues) throws IOException {
        ByteArrayOutputStream block = new ByteArrayOutputStream();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            block.write(0); // literal header field without indexing
            for (String text : new String[] {namesAndValues[i], namesAndValues[i + 1]}) {
                block.write(text.length());
                block.writeBytes(text.getBytes(StandardCharsets.US_ASCII));
            }
        }
        return send(HEADERS, END_HEADERS | (end ? END_STREAM : 0), stream, block.toByteArray());
    }

    /** Begins a gRPC call. */
    RawH2 call(int stream, String path) throws IOException {
        return headers(
                stream, false, ":method", "POST", ":scheme", "http", ":path", path, "content-type", "application/grpc");
    }

    /** Sends a request without a body. */
    RawH2 get(int stream, String path) throws IOException {
        return headers(stream, true, ":method", "GET", ":scheme", "http", ":path", path, ":authority", "x");
    }

    RawH2 data(int stream, boolean end, byte[] bytes) throws IOException {
        return send(DATA, end ? END_STREAM : 0, stream, bytes);
    }

    Frame read() throws IOException {
        int length = in.readUnsignedByte() << 16 | in.readUnsignedShort();
        int type = in.readUnsignedByte();
        int flags = in.readUnsignedByte();
        return new Frame(type, flags, in.readInt(), in.readNBytes(length));
    }

    /** The next frame of a type; those of other types are skipped. */
    Frame next(int type) throws IOException {
        Frame frame = read();
        while (frame.type() != type) {
            frame = read();
        }
        return frame;
    }

    Http2Headers decode(Frame headers) throws Exception {
        return decoder.decodeHeaders(headers.stream(), Unpooled.wrappedBuffer(headers.payload()));
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
