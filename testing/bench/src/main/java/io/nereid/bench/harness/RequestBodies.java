// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.harness;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Random;

/** The request bodies of the load, written into a directory, and the models that serve them. Confined to one thread. */
public final class RequestBodies {
    /** Elements of an image batch [8,3,224,224]: 4.8 MB. */
    public static final int BIG = 8 * 3 * 224 * 224;

    /** Bytes of the JSON of a request to {@code minilm}, spaces included. */
    private static final int MINILM_HEAD = 512;

    private static final String GRPC = "/inference.GRPCInferenceService/ModelInfer";
    private static final List<String> GRPC_HEADERS = List.of("content-type", "application/grpc", "te", "trailers");

    private final Path directory;
    private final Random random = new Random(1);

    public RequestBodies(Path directory) {
        this.directory = directory;
    }

    /** Writes a repository with one identity model {@code m}: FP32 {@code x} to {@code y}, of any size. */
    public static Path identity(Path directory) throws IOException {
        Path model = directory.resolve("m");
        Files.createDirectories(model.resolve("1"));
        Files.writeString(model.resolve("config.pbtxt"), """
            name: "m"
            backend: "identity"
            parameters { key: "response_parameters" value { string_value: "false" } }
            input [ { name: "x" data_type: TYPE_FP32 dims: [ -1, -1 ] } ]
            output [ { name: "y" data_type: TYPE_FP32 dims: [ -1, -1 ] } ]
            """);
        return directory;
    }

    /** As {@link #identity}, with response caching; the server must be configured with a cache. */
    public static Path cached(Path directory) throws IOException {
        Path config = identity(directory).resolve("m").resolve("config.pbtxt");
        Files.writeString(config, Files.readString(config) + "response_cache { enable: true }\n");
        return directory;
    }

    public LoadGenerator restSmall() {
        return restSmall("x", "/v2/models/m/infer");
    }

    /** A load that calls the models {@code m0}, {@code m1}, … in turn. */
    public LoadGenerator models(int count) {
        return restSmall("INPUT0", "/v2/models/m" + LoadGenerator.TURN + "/infer")
                .inTurns(count);
    }

    private LoadGenerator restSmall(String input, String path) {
        StringBuilder json = new StringBuilder("{\"id\":\"1\",\"inputs\":[{\"name\":\"" + input
                + "\",\"shape\":[1,16],\"datatype\":\"FP32\",\"data\":[");
        for (int i = 0; i < 16; i++) {
            json.append(i == 0 ? "" : ",")
                    .append(String.format(Locale.ROOT, "0.%06d", 100_000 + random.nextInt(900_000)));
        }
        return new LoadGenerator(
                false,
                16,
                1,
                path,
                write("small.json", json.append("]}]}").toString().getBytes(StandardCharsets.US_ASCII)),
                List.of("Content-Type", "application/json"));
    }

    public LoadGenerator restBig() {
        String head = "{\"id\":\"1\",\"inputs\":[{\"name\":\"x\",\"shape\":[8," + BIG / 8
                + "],\"datatype\":\"FP32\",\"parameters\":{\"binary_data_size\":" + 4 * BIG
                + "}}],\"outputs\":[{\"name\":\"y\",\"parameters\":{\"binary_data\":true}}]}";
        return new LoadGenerator(
                false,
                4,
                1,
                "/v2/models/m/infer",
                write("big.bin", join(head.getBytes(StandardCharsets.US_ASCII), floats(BIG))),
                List.of(
                        "Content-Type",
                        "application/octet-stream",
                        "Inference-Header-Content-Length",
                        Integer.toString(head.length())));
    }

    public LoadGenerator grpcSmall(int connections, int streams) {
        return new LoadGenerator(
                true, connections, streams, GRPC, write("small.grpc", message(floats(16), 1, 16)), GRPC_HEADERS);
    }

    public LoadGenerator grpcBig() {
        return new LoadGenerator(true, 4, 1, GRPC, write("big.grpc", message(floats(BIG), 8, BIG / 8)), GRPC_HEADERS);
    }

    /** Sixteen tokens for {@code minilm}, binary both ways. */
    public LoadGenerator minilm(int clients) {
        byte[] body = minilmBody(16);
        return minilm(clients, write("minilm.bin", body));
    }

    /**
     * Requests of these lengths in turn, of tokens for {@code minilm}, binary both ways.
     *
     * @param lengths the number of tokens of each request
     */
    public LoadGenerator minilm(int clients, int[] lengths) {
        for (int i = 0; i < lengths.length; i++) {
            write("minilm-" + i + ".bin", minilmBody(lengths[i]));
        }
        return minilm(clients, directory.resolve("minilm-" + LoadGenerator.TURN + ".bin"))
                .inTurns(lengths.length);
    }

    private static LoadGenerator minilm(int clients, Path body) {
        return new LoadGenerator(
                false,
                clients,
                1,
                "/v2/models/minilm/infer",
                body,
                List.of(
                        "Content-Type",
                        "application/octet-stream",
                        "Inference-Header-Content-Length",
                        Integer.toString(MINILM_HEAD)));
    }

    private byte[] minilmBody(int tokens) {
        StringBuilder head = new StringBuilder("{\"inputs\":[");
        ByteBuffer ids = ByteBuffer.allocate(3 * tokens * 8).order(ByteOrder.LITTLE_ENDIAN);
        for (String name : List.of("input_ids", "attention_mask", "token_type_ids")) {
            head.append(name.equals("input_ids") ? "" : ",")
                    .append("{\"name\":\"")
                    .append(name)
                    .append("\",\"shape\":[1,")
                    .append(tokens)
                    .append("],\"datatype\":\"INT64\",\"parameters\":{\"binary_data_size\":")
                    .append(tokens * 8)
                    .append("}}");
            for (int i = 0; i < tokens; i++) {
                ids.putLong(name.equals("input_ids") ? 1000 + random.nextInt(20_000) : name.startsWith("a") ? 1 : 0);
            }
        }
        head.append("],\"parameters\":{\"binary_data_output\":true}}");
        // Spaces after the document, so that all lengths have the same header.
        head.append(" ".repeat(MINILM_HEAD - head.length()));
        return join(head.toString().getBytes(StandardCharsets.US_ASCII), ids.array());
    }

    /** The same sixteen tokens over gRPC, on as many connections as clients. */
    public LoadGenerator minilmGrpc(int clients) {
        ByteArrayOutputStream request = new ByteArrayOutputStream();
        field(request, 1, "minilm".getBytes(StandardCharsets.US_ASCII));
        List<String> names = List.of("input_ids", "attention_mask", "token_type_ids");
        for (String name : names) {
            ByteArrayOutputStream dims = new ByteArrayOutputStream();
            varint(dims, 1);
            varint(dims, 16);
            ByteArrayOutputStream input = new ByteArrayOutputStream();
            field(input, 1, name.getBytes(StandardCharsets.US_ASCII));
            field(input, 2, "INT64".getBytes(StandardCharsets.US_ASCII));
            field(input, 3, dims.toByteArray());
            field(request, 5, input.toByteArray());
        }
        for (String name : names) {
            ByteBuffer values = ByteBuffer.allocate(16 * 8).order(ByteOrder.LITTLE_ENDIAN);
            for (int i = 0; i < 16; i++) {
                values.putLong(name.equals("input_ids") ? 1000 + random.nextInt(20_000) : name.startsWith("a") ? 1 : 0);
            }
            field(request, 7, values.array());
        }
        return new LoadGenerator(
                true, clients, 1, GRPC, write("minilm.grpc", prefixed(request.toByteArray())), GRPC_HEADERS);
    }

    /** The example model {@code simple}, as JSON. */
    public LoadGenerator simple(int clients) {
        String row = "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]";
        String json = "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1,16],\"datatype\":\"INT32\",\"data\":" + row
                + "},{\"name\":\"INPUT1\",\"shape\":[1,16],\"datatype\":\"INT32\",\"data\":" + row + "}]}";
        return new LoadGenerator(
                false,
                clients,
                1,
                "/v2/models/simple/infer",
                write("simple.json", json.getBytes(StandardCharsets.US_ASCII)),
                List.of("Content-Type", "application/json"));
    }

    private byte[] floats(int count) {
        ByteBuffer raw = ByteBuffer.allocate(4 * count).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < count; i++) {
            raw.putFloat(random.nextFloat());
        }
        return raw.array();
    }

    /**
     * Encodes a ModelInferRequest with gRPC's message prefix: model_name 1, id 3, inputs 5 (name 1, datatype 2, shape
     * 3), raw 7.
     */
    static byte[] message(byte[] raw, long... shape) {
        ByteArrayOutputStream dims = new ByteArrayOutputStream();
        for (long dim : shape) {
            varint(dims, dim);
        }
        ByteArrayOutputStream input = new ByteArrayOutputStream();
        field(input, 1, "x".getBytes(StandardCharsets.US_ASCII));
        field(input, 2, "FP32".getBytes(StandardCharsets.US_ASCII));
        field(input, 3, dims.toByteArray());
        ByteArrayOutputStream request = new ByteArrayOutputStream();
        field(request, 1, "m".getBytes(StandardCharsets.US_ASCII));
        field(request, 3, "1".getBytes(StandardCharsets.US_ASCII));
        field(request, 5, input.toByteArray());
        field(request, 7, raw);
        return prefixed(request.toByteArray());
    }

    /** Puts gRPC's message prefix before a message. */
    private static byte[] prefixed(byte[] body) {
        return join(ByteBuffer.allocate(5).put((byte) 0).putInt(body.length).array(), body);
    }

    private static void field(ByteArrayOutputStream out, int number, byte[] value) {
        varint(out, number << 3 | 2);
        varint(out, value.length);
        out.writeBytes(value);
    }

    private static void varint(ByteArrayOutputStream out, long value) {
        long rest = value;
        while ((rest & ~0x7fL) != 0) {
            out.write((int) (rest & 0x7f | 0x80));
            rest >>>= 7;
        }
        out.write((int) rest);
    }

    private static byte[] join(byte[] a, byte[] b) {
        return ByteBuffer.allocate(a.length + b.length).put(a).put(b).array();
    }

    private Path write(String name, byte[] bytes) {
        try {
            return Files.write(directory.resolve(name), bytes);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
