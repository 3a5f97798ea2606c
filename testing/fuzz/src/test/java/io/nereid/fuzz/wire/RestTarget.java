// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.wire;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.base.Clock;
import io.nereid.fuzz.FuzzTarget;
import io.nereid.observe.Observability;
import io.nereid.protocols.mlflow.MlflowCodec;
import io.nereid.protocols.v1.V1Codec;
import io.nereid.protocols.v1.common.V1Options;
import io.nereid.protocols.v2.V2Codec;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.transport.api.ProtocolCodec;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The body of a request to one of several routes of a codec; the first byte of an input chooses among them. The response is one,
 * with a status that says that the request is wrong, or 200; JSON in it is well formed. Confined to one thread.
 */
public final class RestTarget implements FuzzTarget {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** A path with the headers of its requests; {@code binary} takes two more bytes as the length of the JSON part. */
    private record Route(String path, String headers, boolean binary, String... bodies) {
        Route(String path, String headers, String... bodies) {
            this(path, headers, false, bodies);
        }
    }

    private final WireServer server;
    private final List<Route> routes;

    private RestTarget(ProtocolCodec codec, Route... routes) {
        this.server = new WireServer(codec.httpRoutes(), codec.grpcMethods());
        this.routes = List.of(routes);
    }

    static V2Codec v2() {
        EchoEngine engine = new EchoEngine();
        return new V2Codec(
                engine,
                engine,
                Observability.NONE,
                Clock.system(),
                Runnable::run,
                V2Options.builder("1", WireServer.MOST_BYTES).modelUpload(true).build());
    }

    static V1Codec v1() {
        EchoEngine engine = new EchoEngine();
        return new V1Codec(engine, engine, Runnable::run, V1Options.defaults(Clock.system()));
    }

    /** Open Inference over REST, with the binary extension, the generate extension, and the management requests. */
    public static RestTarget ofV2() {
        String[] inputs = {
            "{\"name\":\"f\",\"shape\":[2,2],\"datatype\":\"FP32\",\"data\":[[1.5,-2e3],[NaN,0.25]]}",
            "{\"name\":\"t\",\"shape\":[2],\"datatype\":\"BYTES\",\"data\":[\"a\\u00e9\\n\",{\"b64\":\"AAE=\"}]}",
            "{\"data\":[1,2,3],\"name\":\"i\",\"shape\":[3],\"datatype\":\"UINT8\",\"parameters\":{\"p\":[1]}}",
            "{\"name\":\"b\",\"shape\":[1],\"datatype\":\"BOOL\",\"data\":[true]},"
                    + "{\"name\":\"y\",\"shape\":[1],\"datatype\":\"FP16\",\"data\":[1]}",
            "{\"name\":\"i\",\"shape\":[2],\"datatype\":\"INT64\",\"data\":[9223372036854775807,-1]}",
            "{\"name\":\"i\",\"shape\":[1],\"datatype\":\"INT8\",\"parameters\":{\"shared_memory_region\":\"r\","
                    + "\"shared_memory_byte_size\":1,\"shared_memory_offset\":0}}",
        };
        String[] whole = new String[inputs.length];
        for (int i = 0; i < inputs.length; i++) {
            whole[i] = request(inputs[i], i % 2 == 0);
        }
        return new RestTarget(
                v2(),
                new Route("/v2/models/m/infer", "", whole),
                new Route(
                        "/v2/models/m/infer",
                        "",
                        true,
                        request(
                                "{\"name\":\"i\",\"shape\":[2],\"datatype\":\"INT32\","
                                        + "\"parameters\":{\"binary_data_size\":8}}",
                                true),
                        request(
                                "{\"name\":\"t\",\"shape\":[1],\"datatype\":\"BYTES\","
                                        + "\"parameters\":{\"binary_data_size\":8}}",
                                false)),
                new Route(
                        "/v2/models/m/generate",
                        "",
                        "{\"id\":\"7\",\"t\":\"h\\u00e9\",\"i\":[1,2,3,4],\"stream\":true,\"none\":null}",
                        "{\"t\":[\"a\",\"b\"],\"f\":1.5,\"b\":false,\"parameters\":{\"x\":1}}"),
                new Route("/v2/models/m/generate_stream", "", "{\"t\":\"a\"}"),
                new Route(
                        "/v2/repository/models/m/load",
                        "",
                        "{\"parameters\":{\"config\":\"{\\\"backend\\\":\\\"java\\\"}\",\"file:1/model.bin\":\"AAEC\"}}"),
                new Route("/v2/repository/index", "", "{\"ready\":true}"),
                new Route("/v2/models/m/trace/setting", "", "{\"trace_rate\":[\"1\"],\"trace_level\":null}"),
                new Route("/v2/logging", "", "{\"log_verbose_level\":1,\"log_info\":true,\"log_format\":\"default\"}"),
                new Route(
                        "/v2/systemsharedmemory/region/r/register",
                        "",
                        "{\"key\":\"/none\",\"offset\":0,\"byte_size\":8}"));
    }

    private static String request(String inputs, boolean outputs) {
        return "{\"id\":\"7\",\"parameters\":{\"a\":1,\"timeout\":5,\"binary_data_output\":true},\"inputs\":[" + inputs
                + "]"
                + (outputs
                        ? ",\"outputs\":[{\"name\":\"f\",\"parameters\":{\"binary_data\":true,\"classification\":2}}]"
                        : "")
                + "}";
    }

    /** TensorFlow Serving's REST API, which includes KServe's V1, and cloud events. */
    public static RestTarget ofV1() {
        return new RestTarget(
                v1(),
                new Route(
                        "/v1/models/half:predict",
                        "",
                        "{\"instances\":[1.0,2,-3e5]}",
                        "{\"inputs\":{\"x\":[1,2]}}",
                        "{\"signature_name\":\"serving_default\",\"instances\":[{\"x\":1},{\"x\":2}]}"),
                new Route(
                        "/v1/models/m/versions/1:predict",
                        "",
                        "{\"inputs\":{\"f\":[[1,2],[3,4]],\"i\":[1,2],\"t\":[\"a\",{\"b64\":\"AAE=\"}],\"b\":[true,false]}}",
                        "{\"instances\":[{\"f\":[1],\"i\":1,\"t\":\"a\",\"b\":true}]}"),
                new Route(
                        "/v1/models/half:classify",
                        "",
                        "{\"signature_name\":\"classify\",\"context\":{\"x\":1.5},\"examples\":[{\"x\":[1.5]},{}]}"),
                new Route(
                        "/v1/models/half:regress",
                        "",
                        "{\"signature_name\":\"regress\",\"examples\":[{\"x\":1.5,\"y\":\"t\",\"z\":[1,2]}]}"),
                new Route(
                        "/v1/embeddings",
                        "",
                        "{\"model\":\"m\",\"input\":[\"a\",\"b\"],\"encoding_format\":\"base64\"}",
                        "{\"model\":\"m\",\"input\":[[1,2],[3]],\"dimensions\":2}"),
                new Route(
                        "/v1/rerank",
                        "",
                        "{\"model\":\"m\",\"query\":\"q\",\"documents\":[\"a\",{\"text\":\"b\"}],\"top_n\":1}"),
                new Route(
                        "/v1/models/half:predict",
                        "ce-specversion: 1.0\r\nce-id: 1\r\nce-source: s\r\nce-type: t\r\n",
                        "{\"instances\":[1.0]}"),
                new Route(
                        "/v1/models/half:predict",
                        "content-type: application/cloudevents+json\r\n",
                        "{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"s\",\"type\":\"t\",\"data\":{\"instances\":[1.0]}}"));
    }

    /** The scoring requests of MLflow. */
    public static RestTarget ofMlflow() {
        EchoEngine engine = new EchoEngine();
        return new RestTarget(
                new MlflowCodec(engine, engine, Runnable::run, "1"),
                new Route(
                        "/models/half/invocations",
                        "content-type: application/json\r\n",
                        "{\"dataframe_split\":{\"columns\":[\"x\"],\"index\":[0,1],\"data\":[[1.5],[2]]}}",
                        "{\"dataframe_records\":[{\"x\":1.5},{\"x\":2}],\"params\":{\"a\":1}}",
                        "{\"instances\":[1.5,2]}",
                        "{\"inputs\":{\"x\":[1.5,2]}}"),
                new Route(
                        "/models/m/versions/1/invocations",
                        "content-type: application/json; charset=utf-8\r\n",
                        "{\"inputs\":{\"f\":[[1,2],[3,4]],\"i\":[1,2],\"t\":[\"a\",\"b\"],\"b\":[true,false]}}"),
                new Route(
                        "/invocations",
                        "content-type: text/csv\r\n",
                        "x\n1.5\n\"2\"\n",
                        "a,\"b \"\"c\"\"\"\r\n1,\r\n"));
    }

    @Override
    public void read(byte[] input) throws IOException {
        if (input.length < 3) {
            return;
        }
        Route route = routes.get((input[0] & 0xff) % routes.size());
        String headers = route.headers;
        int from = 1;
        if (route.binary) {
            headers += "Inference-Header-Content-Length: " + ((input[1] & 0xff) << 8 | input[2] & 0xff) + "\r\n";
            from = 3;
        }
        byte[] body = Arrays.copyOfRange(input, from, input.length);
        if (body.length > WireServer.MOST_BYTES) {
            return;
        }
        String head = "POST " + route.path + " HTTP/1.1\r\nHost: a\r\n" + headers + "Content-Length: " + body.length
                + "\r\n\r\n";
        byte[] answers = server.answers(List.of(WireServer.join(head.getBytes(StandardCharsets.US_ASCII), body)));
        RequestChecks.verify();
        List<Http1Responses.Response> all = Http1Responses.read(answers);
        if (all.size() != 1) {
            throw new AssertionError(all.size() + " responses to one request");
        }
        Http1Responses.Response response = all.get(0);
        String text = response.body() == null ? "" : new String(response.body(), StandardCharsets.UTF_8);
        switch (response.status()) {
            case 200, 400, 404, 413, 415, 422, 501 -> {}
            default -> throw new AssertionError("status " + response.status() + ": " + text);
        }
        if (response.body() != null
                && response.headers().stream().anyMatch(h -> h.startsWith("content-type: application/json"))) {
            boolean finite = !text.contains("NaN") && !text.contains("Infinity");
            if (finite) {
                JSON.readTree(response.body());
            }
        }
    }

    @Override
    public List<byte[]> seeds() {
        List<byte[]> seeds = new ArrayList<>();
        for (int i = 0; i < routes.size(); i++) {
            for (String body : routes.get(i).bodies) {
                byte[] text = body.getBytes(StandardCharsets.UTF_8);
                seeds.add(
                        routes.get(i).binary
                                ? WireServer.join(
                                        new byte[] {(byte) i, (byte) (text.length >> 8), (byte) text.length},
                                        text,
                                        new byte[] {4, 0, 0, 0, 'a', 'b', 'c', 'd'})
                                : WireServer.join(new byte[] {(byte) i}, text));
            }
        }
        return seeds;
    }
}
