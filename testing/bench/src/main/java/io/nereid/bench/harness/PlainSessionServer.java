// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.harness;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import io.nereid.base.access.Operation;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.server.Server;
import java.nio.FloatBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

/**
 * The server's transport with a plain ONNX Runtime session for each model {@code m0}, {@code m1}, …: a request runs the session once, with
 * a tensor that is always the same, and gets a constant response. It shows what sessions cost in a process that
 * also has connections, without protocol and engine. Arguments: port, file of the model, number of sessions. Immutable.
 */
public final class PlainSessionServer implements ProtocolCodec {
    private static final byte[] NOTHING = "{}".getBytes(StandardCharsets.US_ASCII);

    private final List<OrtSession> sessions = new ArrayList<>();
    private final Map<String, OnnxTensor> fed;

    private PlainSessionServer(String model, int count) throws OrtException {
        OrtEnvironment environment = OrtEnvironment.getEnvironment();
        fed = Map.of("INPUT0", OnnxTensor.createTensor(environment, FloatBuffer.allocate(16), new long[] {1, 16}));
        try (OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
            options.setIntraOpNumThreads(1);
            for (int i = 0; i < count; i++) {
                sessions.add(environment.createSession(model, options));
            }
        }
    }

    /** Runs until killed. */
    public static void main(String[] args) throws InterruptedException, OrtException {
        ServerOptions options = ServerOptions.builder()
                .listen("127.0.0.1", Integer.parseInt(args[0]))
                .build();
        try (Server server = new Server(options, List.of(new PlainSessionServer(args[1], Integer.parseInt(args[2]))))) {
            server.start();
            new CountDownLatch(1).await();
        }
    }

    @Override
    public String name() {
        return "plain-sessions";
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        return List.of(
                HttpRoute.get("/v2/health/ready", Operation.HEALTH, PlainSessionServer::answer),
                HttpRoute.post("/v2/models/{model}/infer", Operation.INFERENCE, this::run));
    }

    private void run(HttpExchange exchange) {
        int index = Integer.parseInt(exchange.pathParameter(0).substring(1));
        try {
            sessions.get(index).run(fed).close();
        } catch (OrtException e) {
            throw new IllegalStateException("the run of session " + index + " failed", e);
        }
        answer(exchange);
    }

    private static void answer(HttpExchange exchange) {
        exchange.reply(HttpReply.json(200, NOTHING, NOTHING.length));
    }
}
