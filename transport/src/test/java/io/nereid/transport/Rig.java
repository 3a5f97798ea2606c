// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.base.access.Operation;
import io.nereid.tensor.ByteBudget;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.NettyBuffers;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.ResponseStream;
import io.nereid.transport.server.Server;
import io.netty.buffer.PoolArenaMetric;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/** A server with routes and methods that echo, hold, fail and stream; and a raw HTTP/1.1 client. */
public final class Rig implements AutoCloseable, ProtocolCodec {
    final BlockingQueue<HttpExchange> parked = new LinkedBlockingQueue<>();
    final BlockingQueue<GrpcCall> parkedCalls = new LinkedBlockingQueue<>();
    final BlockingQueue<String> events = new LinkedBlockingQueue<>();
    final CountDownLatch ready = new CountDownLatch(1);
    final ExecutorService other = Threads.single("test-other");
    public final ServerOptions options;
    public final Server server;
    public final int port;
    public final List<Integer> ports;

    Rig() {
        this(o -> o);
    }

    public Rig(UnaryOperator<ServerOptions.Builder> options) {
        this.options = options.apply(
                        ServerOptions.builder().listen("127.0.0.1", 0).eventLoops(1))
                .build();
        server = new Server(this.options, List.of(this));
        ports = server.start().stream().map(InetSocketAddress::getPort).toList();
        port = ports.get(0);
    }

    @Override
    public String name() {
        return "test";
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        return List.of(
                HttpRoute.get("/ok", Operation.INFERENCE, x -> x.reply(HttpReply.json(200, "{\"ok\":true}"))),
                HttpRoute.get(
                        "/metrics", Operation.INFERENCE, x -> x.reply(HttpReply.text(200, "text/plain", "up 1\n"))),
                HttpRoute.get(
                        "/items/{a}/sub/{b}",
                        Operation.INFERENCE,
                        x -> x.reply(HttpReply.text(200, "text/plain", x.pathParameter(0) + "|" + x.pathParameter(1)))),
                HttpRoute.get(
                        "/query",
                        Operation.INFERENCE,
                        x -> x.reply(HttpReply.text(200, "text/plain", String.valueOf(x.queryParameter("q"))))),
                HttpRoute.get(
                        "/header",
                        Operation.INFERENCE,
                        x -> x.reply(HttpReply.text(200, "text/plain", String.valueOf(x.header("x-test"))))),
                HttpRoute.get(
                        "/text/{n}",
                        Operation.INFERENCE,
                        x -> x.reply(HttpReply.text(200, "text/plain", "a".repeat(number(x.pathParameter(0)))))),
                HttpRoute.get("/throw", Operation.INFERENCE, x -> {
                    throw new IllegalStateException("secret detail");
                }),
                HttpRoute.get("/twice", Operation.INFERENCE, x -> {
                    x.reply(HttpReply.json(200, "1"));
                    x.reply(HttpReply.json(200, "2"));
                }),
                HttpRoute.post("/echo", Operation.INFERENCE, Rig::echo),
                HttpRoute.post("/echo-elsewhere", Operation.INFERENCE, x -> other.execute(() -> echo(x))),
                HttpRoute.post("/parts", Operation.INFERENCE, Rig::parts),
                HttpRoute.get("/stream/{n}", Operation.INFERENCE, Rig::stream),
                HttpRoute.get("/headers", Operation.INFERENCE, x -> {
                    StringBuilder all = new StringBuilder();
                    x.headers((name, value) ->
                            all.append(name).append('=').append(value).append(';'));
                    x.reply(HttpReply.text(200, "text/plain", all.toString()));
                }),
                HttpRoute.post("/park", Operation.INFERENCE, this::park),
                HttpRoute.get("/park", Operation.INFERENCE, this::park));
    }

    private static int number(String digits) {
        if (!digits.matches("[0-9]{1,5}")) {
            throw ServingException.invalidArgument("'" + digits + "' is not a small number");
        }
        return Integer.parseInt(digits);
    }

    /** Pieces from the event loop itself. */
    private static void stream(HttpExchange x) {
        ResponseStream stream = x.stream(HttpReply.text(200, "text/plain", "<"));
        for (int i = 0; i < number(x.pathParameter(0)); i++) {
            byte[] piece = (i + ",").getBytes(StandardCharsets.US_ASCII);
            stream.send(new ResponseBody(piece, piece.length));
        }
        stream.end();
    }

    private void park(HttpExchange exchange) {
        exchange.onCancel(() -> events.add("cancel"));
        parked.add(exchange);
    }

    private static void echo(HttpExchange x) {
        MemoryRegion body = x.body();
        ResponseBody content = new ResponseBody(new byte[0], 0);
        if (body.size() > 0) {
            content.splice(tensor(body.retain(), 0, body.size()), 0);
        }
        x.reply(new HttpReply(200, "application/octet-stream", new String[0], content));
    }

    /** Text, a small tensor, text, a large tensor, text. */
    private static void parts(HttpExchange x) {
        MemoryRegion body = x.body();
        ResponseBody content = new ResponseBody("<|>".getBytes(StandardCharsets.US_ASCII), 3);
        content.splice(tensor(body.retain(), 0, 100), 1);
        content.splice(tensor(body.retain(), 100, body.size() - 100), 2);
        x.reply(new HttpReply(200, "application/octet-stream", new String[] {"x-more", "yes"}, content));
    }

    static Tensor tensor(MemoryRegion region, int offset, int length) {
        return Tensor.over("", DataType.UINT8, Shape.of(length), region, offset, length);
    }

    public static ResponseBody content(MemoryRegion message) {
        ResponseBody content = new ResponseBody(new byte[0], 0);
        if (message.size() > 0) {
            content.splice(tensor(message.retain(), 0, message.size()), 0);
        }
        return content;
    }

    @Override
    public List<GrpcMethod> grpcMethods() {
        return List.of(
                new GrpcMethod(
                        "/t.T/Unary", GrpcMethod.Kind.UNARY, Operation.INFERENCE, call -> new Echo(call, false, this)),
                new GrpcMethod(
                        "/t.T/Elsewhere",
                        GrpcMethod.Kind.UNARY,
                        Operation.INFERENCE,
                        call -> new Echo(call, true, this)),
                new GrpcMethod(
                        "/t.T/Sum", GrpcMethod.Kind.CLIENT_STREAMING, Operation.INFERENCE, call -> new Sum(call, this)),
                new GrpcMethod(
                        "/t.T/Repeat",
                        GrpcMethod.Kind.SERVER_STREAMING,
                        Operation.INFERENCE,
                        call -> new Repeat(call, this)),
                new GrpcMethod(
                        "/t.T/Chat", GrpcMethod.Kind.BIDI_STREAMING, Operation.INFERENCE, call -> new Chat(call, this)),
                new GrpcMethod("/t.T/Park", GrpcMethod.Kind.UNARY, Operation.INFERENCE, call -> {
                    parkedCalls.add(call);
                    return new Quiet(this);
                }),
                new GrpcMethod("/t.T/ParkStream", GrpcMethod.Kind.BIDI_STREAMING, Operation.INFERENCE, call -> {
                    parkedCalls.add(call);
                    return new Quiet(this);
                }),
                new GrpcMethod("/t.T/HeldBack", GrpcMethod.Kind.BIDI_STREAMING, Operation.INFERENCE, call -> {
                    call.setReading(false);
                    parkedCalls.add(call);
                    return new Chat(call, this);
                }),
                new GrpcMethod("/t.T/Release", GrpcMethod.Kind.UNARY, Operation.INFERENCE, call -> new Quiet(this) {
                    @Override
                    public void onHalfClose() {
                        parkedCalls.remove().setReading(true);
                        call.sendAndClose(new ResponseBody(new byte[0], 0));
                    }
                }),
                new GrpcMethod("/t.T/Throw", GrpcMethod.Kind.UNARY, Operation.INFERENCE, call -> {
                    throw new IllegalStateException("secret detail");
                }),
                new GrpcMethod("/t.T/Meta", GrpcMethod.Kind.UNARY, Operation.INFERENCE, call -> new Quiet(this) {
                    @Override
                    public void onHalfClose() {
                        byte[] b = String.valueOf(call.metadata("x-test")).getBytes(StandardCharsets.UTF_8);
                        call.sendAndClose(new ResponseBody(b, b.length));
                    }
                }));
    }

    /** Counts the events that a listener receives. */
    public static class Quiet implements GrpcListener {
        final Rig rig;

        public Quiet(Rig rig) {
            this.rig = rig;
        }

        @Override
        public void onMessage(MemoryRegion message) {
            rig.events.add("message " + message.size());
        }

        @Override
        public void onHalfClose() {
            rig.events.add("half-close");
        }

        @Override
        public void onCancel() {
            rig.events.add("cancel");
        }

        @Override
        public void onReady() {
            rig.ready.countDown();
        }
    }

    private static final class Echo extends Quiet {
        private final GrpcCall call;
        private final boolean elsewhere;
        private @Nullable MemoryRegion message;

        Echo(GrpcCall call, boolean elsewhere, Rig rig) {
            super(rig);
            this.call = call;
            this.elsewhere = elsewhere;
        }

        @Override
        public void onMessage(MemoryRegion m) {
            message = m.retain();
        }

        @Override
        public void onHalfClose() {
            MemoryRegion m = java.util.Objects.requireNonNull(message);
            message = null;
            Runnable answer = () -> {
                call.sendAndClose(content(m));
                m.release();
            };
            if (elsewhere) {
                rig.other.execute(answer);
            } else {
                answer.run();
            }
        }

        @Override
        public void onCancel() {
            super.onCancel();
            MemoryRegion m = message;
            if (m != null) {
                message = null;
                m.release();
            }
        }
    }

    private static final class Sum extends Quiet {
        private final GrpcCall call;
        private long bytes;

        Sum(GrpcCall call, Rig rig) {
            super(rig);
            this.call = call;
        }

        @Override
        public void onMessage(MemoryRegion m) {
            bytes += m.size();
        }

        @Override
        public void onHalfClose() {
            byte[] b = Long.toString(bytes).getBytes(StandardCharsets.US_ASCII);
            call.sendAndClose(new ResponseBody(b, b.length));
        }
    }

    /** Sends the message as many times as its first byte specifies, from another thread. */
    private static final class Repeat extends Quiet {
        private final GrpcCall call;

        Repeat(GrpcCall call, Rig rig) {
            super(rig);
            this.call = call;
        }

        @Override
        public void onMessage(MemoryRegion m) {
            MemoryRegion mine = m.retain();
            rig.other.execute(() -> {
                for (int i = 0; i < mine.getByte(0); i++) {
                    call.send(content(mine));
                }
                call.close(io.nereid.base.ErrorCode.OK, null);
                mine.release();
            });
        }

        @Override
        public void onHalfClose() {}
    }

    private static final class Chat extends Quiet {
        private final GrpcCall call;

        Chat(GrpcCall call, Rig rig) {
            super(rig);
            this.call = call;
        }

        @Override
        public void onMessage(MemoryRegion m) {
            call.send(content(m));
        }

        @Override
        public void onHalfClose() {
            call.close(io.nereid.base.ErrorCode.OK, null);
        }
    }

    String event() throws InterruptedException {
        return String.valueOf(events.poll(10, TimeUnit.SECONDS));
    }

    HttpExchange parkedExchange() throws InterruptedException {
        return java.util.Objects.requireNonNull(parked.poll(10, TimeUnit.SECONDS), "no exchange arrived");
    }

    GrpcCall parkedCall() throws InterruptedException {
        return java.util.Objects.requireNonNull(parkedCalls.poll(10, TimeUnit.SECONDS), "no call arrived");
    }

    public Raw connect() throws IOException {
        return new Raw(port);
    }

    /** Pooled buffers that are handed out or lie in the cache of a living thread. */
    public static long activeBuffers() {
        NettyBuffers.allocator().trimCurrentThreadCache();
        long n = 0;
        for (PoolArenaMetric arena : NettyBuffers.allocator().metric().directArenas()) {
            n += arena.numActiveAllocations();
        }
        return n;
    }

    /**
     * Checks that everything is given back. The client may have the end of a large response a moment before the server
     * has counted that.
     */
    public static void released(ByteBudget budget) {
        long due = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
        while (budget.used() != 0 && System.nanoTime() < due) {
            Thread.onSpinWait();
        }
        assertThat(budget.used()).isZero();
    }

    @Override
    public void close() {
        server.close();
        other.shutdown();
    }

    /** A response as received. */
    public record Reply(int status, String head, byte[] body) {
        public String text() {
            return new String(body, StandardCharsets.UTF_8);
        }

        public @Nullable String header(String lowerCaseName) {
            for (String line : head.split("\r\n", -1)) {
                if (line.toLowerCase(Locale.ROOT).startsWith(lowerCaseName + ":")) {
                    return line.substring(lowerCaseName.length() + 1).strip();
                }
            }
            return null;
        }
    }

    /** An HTTP/1.1 connection that sends whatever bytes it is given. */
    public static final class Raw implements AutoCloseable {
        final Socket socket;
        public final InputStream in;

        public Raw(int port) throws IOException {
            socket = new Socket();
            socket.connect(new InetSocketAddress("127.0.0.1", port));
            socket.setSoTimeout(10_000);
            socket.setTcpNoDelay(true);
            in = socket.getInputStream();
        }

        public Raw send(String latin1) throws IOException {
            return send(latin1.getBytes(StandardCharsets.ISO_8859_1));
        }

        Raw send(byte[] bytes) throws IOException {
            socket.getOutputStream().write(bytes);
            socket.getOutputStream().flush();
            return this;
        }

        public Reply ask(String request) throws IOException {
            return send(request).read();
        }

        public String line() throws IOException {
            ByteArrayOutputStream b = new ByteArrayOutputStream();
            int c;
            while ((c = in.read()) >= 0) {
                b.write(c);
                if (c == '\n') {
                    break;
                }
            }
            return b.toString(StandardCharsets.ISO_8859_1);
        }

        public Reply read() throws IOException {
            return read(true);
        }

        public Reply read(boolean withBody) throws IOException {
            StringBuilder head = new StringBuilder();
            String line = line();
            if (line.isEmpty()) {
                throw new IOException("closed without a reply");
            }
            while (!line.equals("\r\n")) {
                head.append(line);
                line = line();
                if (line.isEmpty()) {
                    throw new IOException("closed within a head: " + head);
                }
            }
            int status = Integer.parseInt(head.substring(9, 12));
            Reply reply = new Reply(status, head.toString(), new byte[0]);
            String length = reply.header("content-length");
            if (length == null || !withBody) {
                return reply;
            }
            return new Reply(status, head.toString(), in.readNBytes(Integer.parseInt(length)));
        }

        public boolean closed() throws IOException {
            try {
                return in.read() < 0;
            } catch (java.net.SocketException e) {
                return true;
            }
        }

        @Override
        public void close() throws IOException {
            socket.close();
        }
    }
}
