// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.harness;

import io.nereid.base.access.Operation;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.server.Server;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * A no-op server: the server's transport with constant responses. It is the baseline of a request's cost without
 * protocol, engine and model. Arguments: port, bytes of tensor in each reply (0 for {@code {}} and the empty message).
 * Immutable.
 */
public final class NoopServer implements ProtocolCodec {
    private static final byte[] NOTHING = "{}".getBytes(StandardCharsets.US_ASCII);

    private final int bytes;
    private final Tensor tensor;

    private NoopServer(int bytes) {
        this.bytes = bytes;
        MemoryRegion region = MemoryRegion.allocate(bytes).zero();
        this.tensor = Tensor.over("y", DataType.UINT8, Shape.of(bytes), region, 0, bytes);
    }

    /** Runs until killed. */
    public static void main(String[] args) throws InterruptedException {
        ServerOptions options = ServerOptions.builder()
                .listen("127.0.0.1", Integer.parseInt(args[0]))
                .build();
        try (Server server = new Server(options, List.of(new NoopServer(Integer.parseInt(args[1]))))) {
            server.start();
            new CountDownLatch(1).await();
        }
    }

    @Override
    public String name() {
        return "nothing";
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        return List.of(
                HttpRoute.get("/v2/health/ready", Operation.HEALTH, this::answer),
                HttpRoute.post("/v2/models/{model}/infer", Operation.INFERENCE, this::answer));
    }

    @Override
    public List<GrpcMethod> grpcMethods() {
        return List.of(new GrpcMethod(
                "/inference.GRPCInferenceService/ModelInfer",
                GrpcMethod.Kind.UNARY,
                Operation.INFERENCE,
                call -> new Answer(call)));
    }

    private ResponseBody content(byte[] text) {
        return bytes == 0 ? new ResponseBody(text, text.length) : new ResponseBody(text, 0).splice(tensor.retain(), 0);
    }

    private void answer(HttpExchange exchange) {
        if (bytes == 0) {
            exchange.reply(HttpReply.json(200, NOTHING, NOTHING.length));
        } else {
            exchange.reply(new HttpReply(200, "application/octet-stream", new String[0], content(NOTHING)));
        }
    }

    /** One call. Confined to its event loop. */
    private final class Answer implements GrpcMethod.GrpcListener {
        private final GrpcCall call;

        Answer(GrpcCall call) {
            this.call = call;
        }

        @Override
        public void onMessage(MemoryRegion message) {
            call.sendAndClose(content(new byte[0]));
        }

        @Override
        public void onHalfClose() {}

        @Override
        public void onCancel() {}
    }
}
