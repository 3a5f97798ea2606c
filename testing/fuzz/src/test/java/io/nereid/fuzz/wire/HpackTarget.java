// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.wire;

import io.nereid.fuzz.FuzzTarget;
import java.util.Arrays;
import java.util.List;

/**
 * The header block of a request over HTTP/2. An input with an even first byte gets valid pseudo-headers before it, so that what
 * follows reaches a handler, which checks that names and values can be written into another request. Confined to one thread.
 */
public final class HpackTarget implements FuzzTarget {
    private static final byte[] PSEUDO =
            Frames.block(List.of(":method", "GET", ":scheme", "http", ":path", "/headers", ":authority", "a"));
    private final WireServer server;

    public HpackTarget() {
        EchoCodec codec = new EchoCodec();
        server = new WireServer(codec.httpRoutes(), codec.grpcMethods());
    }

    @Override
    public void read(byte[] input) {
        if (input.length == 0) {
            return;
        }
        byte[] rest = Arrays.copyOfRange(input, 1, Math.min(input.length, 16_000));
        byte[] block = (input[0] & 1) == 0 ? WireServer.join(PSEUDO, rest) : rest;
        int half = block.length / 2;
        byte[] frames = (input[0] & 2) == 0
                ? Frames.frame(Frames.HEADERS, Frames.END_HEADERS | Frames.END_STREAM, 1, block)
                : WireServer.join(
                        Frames.frame(Frames.HEADERS, Frames.END_STREAM, 1, Arrays.copyOf(block, half)),
                        Frames.frame(9, Frames.END_HEADERS, 1, Arrays.copyOfRange(block, half, block.length)));
        Frames.checked(server.answers(List.of(WireServer.join(Frames.opening(), frames))));
        RequestChecks.verify();
    }

    @Override
    public List<byte[]> seeds() {
        return List.of(
                WireServer.join(new byte[] {0}, Frames.block(List.of("accept", "*/*", "x-test", "1", "cookie", "a=b"))),
                WireServer.join(new byte[] {3}, PSEUDO, Frames.block(List.of("te", "trailers"))),
                // Indexed: :method GET, :scheme http, :path /, then a literal with Huffman coding, and a table size of
                // 0.
                new byte[] {
                    1,
                    0x20,
                    (byte) 0x82,
                    (byte) 0x86,
                    (byte) 0x84,
                    0x41,
                    (byte) 0x8c,
                    (byte) 0xf1,
                    (byte) 0xe3,
                    (byte) 0xc2,
                    (byte) 0xe5,
                    (byte) 0xf2,
                    0x3a,
                    0x6b,
                    (byte) 0xa0,
                    (byte) 0xab,
                    (byte) 0x90,
                    (byte) 0xf4,
                    (byte) 0xff
                },
                WireServer.join(
                        new byte[] {1},
                        Frames.block(List.of(
                                ":method", "CONNECT", ":authority", "a:1", "connection", "close", "host", "b"))));
    }
}
