// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import io.nereid.json.JsonReader;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.util.Map;
import java.util.Objects;

/**
 * Reads the frames of one socket of a worker. A frame that has arrived as a whole costs one system call. Confined to one
 * thread at a time.
 */
final class FrameReader {
    private static final int MAX_FRAME = 256 << 20;

    private final SocketChannel channel;
    private final JsonReader json = new JsonReader();
    /** The bytes between position and limit have been received and not been read; direct, so that they are copied once. */
    private ByteBuffer in;

    private byte[] body = new byte[1 << 12];

    /** @param size bytes of the buffer, which grows with the frames */
    FrameReader(SocketChannel channel, int size) {
        this.channel = channel;
        this.in = ByteBuffer.allocateDirect(size).order(ByteOrder.LITTLE_ENDIAN).limit(0);
    }

    /**
     * Waits for the next frame.
     *
     * @throws IOException when the socket ends, or when the length of a frame is invalid
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for invalid JSON
     */
    Map<String, Object> next() throws IOException {
        while (true) {
            int needed = in.remaining() >= 4 ? in.getInt(in.position()) : 0;
            if (needed < 0 || needed > MAX_FRAME) {
                throw new IOException("a frame of " + needed + " bytes");
            }
            if (in.remaining() >= 4 && in.remaining() - 4 >= needed) {
                return frame(in.getInt());
            }
            receive(needed + 4);
        }
    }

    private Map<String, Object> frame(int length) {
        if (body.length < length + JsonReader.SLACK) {
            body = new byte[length * 2 + JsonReader.SLACK];
        }
        in.get(body, 0, length);
        json.reset(body, 0, length);
        return FrameCodec.map(Objects.requireNonNull(FrameCodec.read(json), "frame"));
    }

    private void receive(int least) throws IOException {
        in.compact();
        if (least > in.capacity()) {
            in = ByteBuffer.allocateDirect(least * 2)
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .put(in.flip());
        }
        try {
            if (channel.read(in) < 0) {
                throw new EOFException("the worker has closed its socket");
            }
        } finally {
            in.flip();
        }
    }
}
