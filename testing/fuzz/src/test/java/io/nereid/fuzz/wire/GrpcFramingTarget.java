// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.wire;

import io.nereid.fuzz.FuzzTarget;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.GZIPOutputStream;

/**
 * The messages of a gRPC call, cut into frames at places that follow from the input; its first byte chooses the method and the
 * compression. What a bidirectional call echoes does not depend on the cuts. Confined to one thread.
 */
public final class GrpcFramingTarget implements FuzzTarget {
    private final WireServer server;

    public GrpcFramingTarget() {
        EchoCodec codec = new EchoCodec();
        server = new WireServer(codec.httpRoutes(), codec.grpcMethods());
    }

    @Override
    public void read(byte[] input) {
        if (input.length == 0) {
            return;
        }
        byte[] messages = Arrays.copyOfRange(input, 1, input.length);
        byte[] whole = echoed(input[0], List.of(messages));
        byte[] cut = echoed(input[0], WireServer.cut(messages));
        if (!Arrays.equals(whole, cut)) {
            throw new AssertionError("what a call returns depends on where its messages are cut");
        }
    }

    private byte[] echoed(int choice, List<byte[]> pieces) {
        List<String> headers = new ArrayList<>(List.of(
                ":method",
                "POST",
                ":scheme",
                "http",
                ":path",
                (choice & 1) == 0 ? "/t.T/Chat" : "/t.T/Unary",
                "content-type",
                "application/grpc",
                "te",
                "trailers"));
        if ((choice & 6) != 0) {
            headers.addAll(
                    List.of("grpc-encoding", (choice & 2) != 0 ? "gzip" : "deflate", "grpc-accept-encoding", "gzip"));
        }
        ByteArrayOutputStream frames = new ByteArrayOutputStream();
        frames.writeBytes(Frames.opening());
        frames.writeBytes(Frames.frame(Frames.HEADERS, Frames.END_HEADERS, 1, Frames.block(headers)));
        for (byte[] piece : pieces) {
            for (int at = 0; at < piece.length; at += 16_000) {
                frames.writeBytes(Frames.frame(
                        Frames.DATA, 0, 1, Arrays.copyOfRange(piece, at, Math.min(piece.length, at + 16_000))));
            }
        }
        frames.writeBytes(Frames.frame(Frames.DATA, Frames.END_STREAM, 1, new byte[0]));
        byte[] data = Frames.checked(server.answers(List.of(frames.toByteArray())));
        RequestChecks.verify();
        return data;
    }

    @Override
    public List<byte[]> seeds() {
        byte[] plain = {0, 0, 0, 0, 3, 'a', 'b', 'c'};
        byte[] zipped = gzip("hello hello hello hello".getBytes(java.nio.charset.StandardCharsets.US_ASCII));
        byte[] compressed = WireServer.join(new byte[] {1, 0, 0, 0, (byte) zipped.length}, zipped);
        return List.of(
                WireServer.join(new byte[] {0}, plain, plain, new byte[5], plain),
                WireServer.join(new byte[] {1}, plain),
                WireServer.join(new byte[] {2}, compressed, plain, compressed),
                WireServer.join(new byte[] {3}, compressed),
                WireServer.join(new byte[] {4}, plain));
    }

    private static byte[] gzip(byte[] bytes) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (GZIPOutputStream gzip = new GZIPOutputStream(out)) {
            gzip.write(bytes);
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
        return out.toByteArray();
    }
}
