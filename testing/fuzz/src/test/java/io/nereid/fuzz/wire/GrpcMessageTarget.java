// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.wire;

import io.nereid.fuzz.FuzzTarget;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.ProtocolCodec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/**
 * One message to a method of a codec, which the first byte of an input chooses. The call ends with OK or with an error of the message.
 * Confined to one thread.
 */
public final class GrpcMessageTarget implements FuzzTarget {
    private final WireServer server;
    private final List<GrpcMethod> methods;
    private final List<byte[]> messages;

    private GrpcMessageTarget(ProtocolCodec codec, byte[]... messages) {
        server = new WireServer(codec.httpRoutes(), codec.grpcMethods());
        methods = codec.grpcMethods().stream()
                .sorted(Comparator.comparing(GrpcMethod::path))
                .toList();
        this.messages = List.of(messages);
    }

    /** The methods of Open Inference, health and reflection. */
    public static GrpcMessageTarget ofV2() {
        byte[] tensor = WireServer.join(
                field(1, "f"), field(2, "FP32"), new byte[] {0x1a, 2, 1, 2}, field(5, new byte[] {0x32, 0}));
        byte[] text =
                WireServer.join(field(1, "t"), field(2, "BYTES"), new byte[] {0x1a, 1, 1}, field(5, field(8, "abc")));
        byte[] output = WireServer.join(field(1, "f"));
        byte[] parameter = WireServer.join(field(1, "timeout"), field(2, new byte[] {0x10, 5}));
        byte[] model = WireServer.join(field(1, "m"), field(2, "1"), field(3, "7"));
        return new GrpcMessageTarget(
                RestTarget.v2(),
                WireServer.join(model, field(4, parameter), field(5, tensor), field(6, output), field(7, new byte[8])),
                WireServer.join(model, field(5, text)),
                WireServer.join(field(1, "m"), field(2, "1")),
                WireServer.join(field(2, "m"), field(3, WireServer.join(field(1, "config"), field(2, field(3, "{}"))))),
                new byte[0]);
    }

    /** The methods of TensorFlow Serving. */
    public static GrpcMessageTarget ofV1() {
        byte[] spec = field(1, WireServer.join(field(1, "half"), field(2, new byte[] {8, 3})));
        byte[] tensor = WireServer.join(new byte[] {8, 1}, field(2, field(2, new byte[] {8, 2})), field(4, new byte[] {
            0, 0, (byte) 128, 63, 0, 0, 0, 64
        }));
        byte[] feature = field(2, field(1, new byte[] {0, 0, (byte) 128, 63}));
        byte[] example = field(1, field(1, WireServer.join(field(1, "x"), field(2, feature))));
        byte[] classify = field(1, WireServer.join(field(1, "half"), field(3, "classify")));
        return new GrpcMessageTarget(
                RestTarget.v1(),
                WireServer.join(spec, field(2, WireServer.join(field(1, "x"), field(2, tensor))), field(3, "x")),
                WireServer.join(classify, field(2, field(1, field(1, example)))),
                WireServer.join(classify, field(2, field(2, WireServer.join(field(1, example), field(2, example))))),
                WireServer.join(spec, field(2, "signature_def")),
                field(
                        1,
                        field(
                                1,
                                field(
                                        1,
                                        WireServer.join(
                                                field(1, "m"), field(2, "/tmp/none"), field(4, "tensorflow"))))),
                spec);
    }

    private static byte[] field(int number, String text) {
        return field(number, text.getBytes(java.nio.charset.StandardCharsets.UTF_8));
    }

    private static byte[] field(int number, byte[] content) {
        return WireServer.join(new byte[] {(byte) (number << 3 | 2), (byte) content.length}, content);
    }

    @Override
    public void read(byte[] input) {
        if (input.length == 0) {
            return;
        }
        String path = methods.get((input[0] & 0xff) % methods.size()).path();
        byte[] message = Arrays.copyOfRange(input, 1, Math.min(input.length, 16_000));
        int length = message.length;
        byte[] prefix = {0, 0, 0, (byte) (length >> 8), (byte) length};
        byte[] headers = Frames.block(List.of(
                ":method",
                "POST",
                ":scheme",
                "http",
                ":path",
                path,
                "content-type",
                "application/grpc",
                "te",
                "trailers"));
        Frames.checked(server.answers(List.of(WireServer.join(
                Frames.opening(),
                Frames.frame(Frames.HEADERS, Frames.END_HEADERS, 1, headers),
                Frames.frame(Frames.DATA, Frames.END_STREAM, 1, WireServer.join(prefix, message))))));
        RequestChecks.verify();
    }

    @Override
    public List<byte[]> seeds() {
        List<byte[]> seeds = new ArrayList<>();
        for (int i = 0; i < methods.size(); i++) {
            for (byte[] message : messages) {
                seeds.add(WireServer.join(new byte[] {(byte) i}, message));
            }
        }
        return seeds;
    }
}
