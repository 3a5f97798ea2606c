// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.wire;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Operation;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.ResponseStream;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** Routes and methods that return what they get, so that the transport alone is under test. Confined to one thread. */
final class EchoCodec implements ProtocolCodec {
    @Override
    public String name() {
        return "echo";
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        return List.of(
                HttpRoute.get("/ok", Operation.INFERENCE, x -> x.reply(HttpReply.json(200, "{\"ok\":true}"))),
                HttpRoute.get(
                        "/items/{a}/sub/{b}",
                        Operation.INFERENCE,
                        x -> x.reply(
                                text(x.pathParameter(0) + "|" + x.pathParameter(1) + "|" + x.queryParameter("q")))),
                HttpRoute.get("/headers", Operation.INFERENCE, x -> x.reply(text(headers(x)))),
                HttpRoute.post("/headers", Operation.INFERENCE, x -> x.reply(text(headers(x)))),
                HttpRoute.get("/large", Operation.INFERENCE, x -> x.reply(text("a".repeat(5_000)))),
                HttpRoute.get("/stream/{n}", Operation.INFERENCE, EchoCodec::stream),
                HttpRoute.get("/wrong", Operation.INFERENCE, x -> {
                    throw ServingException.invalidArgument("'" + x.query() + "' is wrong");
                }),
                HttpRoute.post("/echo", Operation.INFERENCE, EchoCodec::echo),
                new HttpRoute(
                        HttpRoute.ANY,
                        "/any/{rest...}",
                        Operation.INFERENCE,
                        x -> x.reply(text(x.method() + " " + x.path()))));
    }

    private static HttpReply text(String text) {
        return HttpReply.text(200, "text/plain", text);
    }

    private static String headers(HttpExchange x) {
        StringBuilder all = new StringBuilder();
        x.headers((name, value) -> {
            RequestChecks.header(name, value);
            all.append(name).append('=').append(value).append(';');
        });
        return all.toString();
    }

    private static void stream(HttpExchange x) {
        ResponseStream stream = x.stream(text("<"));
        for (int i = 0; i < x.pathParameter(0).length() && i < 20; i++) {
            byte[] piece = (i + ",").getBytes(StandardCharsets.US_ASCII);
            stream.send(new ResponseBody(piece, piece.length));
        }
        stream.end();
    }

    private static void echo(HttpExchange x) {
        x.reply(new HttpReply(200, "application/octet-stream", new String[0], content(x.body())));
    }

    private static ResponseBody content(MemoryRegion bytes) {
        ResponseBody content = new ResponseBody(new byte[0], 0);
        if (bytes.size() > 0) {
            content.splice(Tensor.over("", DataType.UINT8, Shape.of(bytes.size()), bytes.retain(), 0, bytes.size()), 0);
        }
        return content;
    }

    @Override
    public List<GrpcMethod> grpcMethods() {
        return List.of(
                new GrpcMethod(
                        "/t.T/Unary", GrpcMethod.Kind.UNARY, Operation.INFERENCE, call -> new Listener(call, false)),
                new GrpcMethod(
                        "/t.T/Chat",
                        GrpcMethod.Kind.BIDI_STREAMING,
                        Operation.INFERENCE,
                        call -> new Listener(call, true)));
    }

    private static final class Listener implements GrpcMethod.GrpcListener {
        private final GrpcCall call;
        private final boolean many;
        private MemoryRegion message;

        Listener(GrpcCall call, boolean many) {
            this.call = call;
            this.many = many;
            call.metadata((name, value) -> RequestChecks.header(name, value));
        }

        @Override
        public void onMessage(MemoryRegion m) {
            if (many) {
                call.send(content(m));
            } else {
                message = m.retain();
            }
        }

        @Override
        public void onHalfClose() {
            MemoryRegion m = message;
            message = null;
            if (m == null) {
                call.close(ErrorCode.OK, null);
            } else {
                call.sendAndClose(content(m));
                m.release();
            }
        }

        @Override
        public void onCancel() {
            MemoryRegion m = message;
            message = null;
            if (m != null) {
                m.release();
            }
        }
    }
}
