// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.handler.codec.http2.DefaultHttp2HeadersDecoder;
import io.netty.handler.codec.http2.Http2Exception;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** An HTTP/2 connection that sends whatever frames and header fields it is given. Confined to one thread. */
public final class RawHttp2 implements AutoCloseable {
    public static final int DATA = 0;
    public static final int HEADERS = 1;
    public static final int RST_STREAM = 3;
    public static final int SETTINGS = 4;
    public static final int PING = 6;
    public static final int GOAWAY = 7;

    public static final int END_STREAM = 1;
    public static final int END_HEADERS = 4;
    private static final int ACK = 1;

    private final Socket socket = new Socket();
    private final DataInputStream in;
    private final DefaultHttp2HeadersDecoder hpack = new DefaultHttp2HeadersDecoder(false, 1 << 20);

    /** Connects, and sends the preface with SETTINGS. */
    public RawHttp2(int port) throws IOException {
        socket.connect(new InetSocketAddress("127.0.0.1", port));
        socket.setSoTimeout(10_000);
        socket.setTcpNoDelay(true);
        in = new DataInputStream(socket.getInputStream());
        write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".getBytes(StandardCharsets.ISO_8859_1));
        frame(SETTINGS, 0, 0, new byte[0]);
    }

    private void write(byte[] bytes) throws IOException {
        socket.getOutputStream().write(bytes);
        socket.getOutputStream().flush();
    }

    public RawHttp2 frame(int type, int flags, int stream, byte[] payload) throws IOException {
        ByteBuf frame = Unpooled.buffer(9 + payload.length)
                .writeMedium(payload.length)
                .writeByte(type)
                .writeByte(flags)
                .writeInt(stream)
                .writeBytes(payload);
        write(frame.array());
        return this;
    }

    /** Sends HEADERS with literal fields, name and value in turn, byte for byte. */
    public RawHttp2 headers(int stream, boolean end, String... fields) throws IOException {
        return frame(HEADERS, END_HEADERS | (end ? END_STREAM : 0), stream, block(fields));
    }

    /** A header block of literal fields that are not indexed. */
    public static byte[] block(String... fields) {
        ByteArrayOutputStream block = new ByteArrayOutputStream();
        for (int i = 0; i < fields.length; i++) {
            if (i % 2 == 0) {
                block.write(0);
            }
            byte[] text = fields[i].getBytes(StandardCharsets.ISO_8859_1);
            int rest = text.length;
            if (rest < 127) {
                block.write(rest);
            } else {
                block.write(127);
                for (rest -= 127; rest >= 128; rest >>= 7) {
                    block.write(rest & 127 | 128);
                }
                block.write(rest);
            }
            block.writeBytes(text);
        }
        return block.toByteArray();
    }

    public RawHttp2 data(int stream, boolean end, String latin1) throws IOException {
        return frame(DATA, end ? END_STREAM : 0, stream, latin1.getBytes(StandardCharsets.ISO_8859_1));
    }

    /** How a stream ended, or the connection with it. */
    public record Outcome(String what, long error, String status, String body) {}

    /**
     * Reads until the stream or the connection has ended: {@code response}, {@code reset}, {@code goaway} with the
     * error, or {@code closed}. Acknowledges SETTINGS on the way.
     */
    public Outcome outcome(int stream) throws IOException, Http2Exception {
        String status = "";
        StringBuilder body = new StringBuilder();
        while (true) {
            int length;
            try {
                length = in.readUnsignedShort() << 8 | in.readUnsignedByte();
            } catch (EOFException | java.net.SocketException e) {
                return new Outcome("closed", 0, status, body.toString());
            }
            int type = in.readUnsignedByte();
            int flags = in.readUnsignedByte();
            int id = in.readInt();
            ByteBuf payload = Unpooled.wrappedBuffer(in.readNBytes(length));
            boolean ours = id == stream;
            if (type == HEADERS) {
                CharSequence told = hpack.decodeHeaders(id, payload).status();
                if (ours && told != null) {
                    status = told.toString();
                }
            } else if (type == DATA && ours) {
                body.append(payload.toString(StandardCharsets.ISO_8859_1));
            } else if (type == SETTINGS && (flags & ACK) == 0) {
                frame(SETTINGS, ACK, 0, new byte[0]);
            } else if (type == RST_STREAM && ours) {
                return new Outcome("reset", payload.readUnsignedInt(), status, body.toString());
            } else if (type == GOAWAY) {
                payload.readInt();
                return new Outcome("goaway", payload.readUnsignedInt(), status, body.toString());
            }
            if (ours && (type == HEADERS || type == DATA) && (flags & END_STREAM) != 0) {
                return new Outcome("response", 0, status, body.toString());
            }
        }
    }

    /** What the server sends until it closes, as text. */
    public String text() throws IOException {
        return new String(in.readAllBytes(), StandardCharsets.ISO_8859_1);
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
