// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.wire;

import io.nereid.fuzz.FuzzTarget;
import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A connection of HTTP/2 after the preface. An input is a list of frames, each of five bytes (type, flags, stream, two of the length)
 * and a payload, so that changed inputs are whole frames most of the time; when its first byte is odd, it is the bytes themselves.
 * Confined to one thread.
 */
public final class Http2Target implements FuzzTarget {
    private static final byte[] REQUEST =
            Frames.block(List.of(":method", "POST", ":scheme", "http", ":path", "/echo", ":authority", "a"));
    private static final byte[] CALL = Frames.block(List.of(
            ":method",
            "POST",
            ":scheme",
            "http",
            ":path",
            "/t.T/Chat",
            "content-type",
            "application/grpc",
            "te",
            "trailers",
            "grpc-timeout",
            "1S"));
    private final WireServer server;

    public Http2Target() {
        EchoCodec codec = new EchoCodec();
        server = new WireServer(codec.httpRoutes(), codec.grpcMethods());
    }

    @Override
    public void read(byte[] input) {
        if (input.length == 0) {
            return;
        }
        byte[] frames = Arrays.copyOfRange(input, 1, input.length);
        byte[] sent = WireServer.join(Frames.opening(), (input[0] & 1) != 0 ? frames : frames(frames));
        Frames.checked(server.answers(List.of(sent)));
        RequestChecks.verify();
        Frames.checked(server.answers(WireServer.cut(sent)));
        RequestChecks.verify();
    }

    private static byte[] frames(byte[] in) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        int at = 0;
        while (in.length - at >= 5) {
            int length = Math.min((in[at + 3] & 255) << 8 | in[at + 4] & 255, in.length - at - 5);
            byte[] payload = Arrays.copyOfRange(in, at + 5, at + 5 + length);
            out.writeBytes(Frames.frame(in[at], in[at + 1], in[at + 2] & 255, payload));
            at += 5 + length;
        }
        return out.toByteArray();
    }

    private static byte[] short_(int type, int flags, int stream, byte... payload) {
        return WireServer.join(
                new byte[] {
                    (byte) type, (byte) flags, (byte) stream, (byte) (payload.length >> 8), (byte) payload.length
                },
                payload);
    }

    @Override
    public List<byte[]> seeds() {
        byte[] start = {0};
        byte[] message = {0, 0, 0, 0, 3, 'a', 'b', 'c'};
        List<byte[]> seeds = new ArrayList<>();
        seeds.add(WireServer.join(start, short_(1, 4, 1, REQUEST), short_(0, 1, 1, (byte) 'x', (byte) 'y')));
        seeds.add(WireServer.join(
                start,
                short_(1, 4, 1, CALL),
                short_(0, 0, 1, message),
                short_(8, 0, 0, (byte) 0, (byte) 0, (byte) 1, (byte) 0),
                short_(0, 1, 1, message)));
        seeds.add(WireServer.join(
                start,
                short_(4, 0, 0, (byte) 0, (byte) 4, (byte) 0, (byte) 0, (byte) 0, (byte) 1),
                short_(1, 0, 3, Arrays.copyOf(REQUEST, 10)),
                short_(9, 4, 3, Arrays.copyOfRange(REQUEST, 10, REQUEST.length)),
                short_(6, 0, 0, new byte[8]),
                short_(3, 0, 3, new byte[4]),
                short_(2, 0, 5, new byte[5]),
                short_(7, 0, 0, new byte[8])));
        seeds.add(WireServer.join(
                new byte[] {1}, Frames.frame(1, 4, 1, REQUEST), Frames.frame(0, 9, 1, new byte[] {1, 'x', 0})));
        return seeds;
    }
}
