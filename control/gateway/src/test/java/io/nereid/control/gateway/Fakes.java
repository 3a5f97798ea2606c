// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Operation;
import io.nereid.control.gateway.upstream.ProtocolTranscoder;
import io.nereid.tensor.MemoryRegion;
import io.nereid.testkit.InMemoryExchange;
import io.nereid.transport.api.ForwardOptions;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.ResponseStream;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.api.UpstreamResponse;
import io.nereid.transport.api.VirtualHosts;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** Fakes of the gateway's collaborators. Stateless. */
public final class Fakes {
    private Fakes() {}

    public static MemoryRegion region(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        ByteBuffer memory = ByteBuffer.allocateDirect(bytes.length);
        memory.put(bytes);
        return MemoryRegion.wrap(memory, () -> {});
    }

    public static String text(MemoryRegion region) {
        byte[] bytes = new byte[region.size()];
        region.getBytes(0, bytes, 0, bytes.length);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    static String text(ResponseBody content) {
        return new String(content.text(), 0, content.textLength(), StandardCharsets.UTF_8);
    }

    public static ResponseBody content(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return new ResponseBody(bytes, bytes.length);
    }

    /** A clock that a test advances. Thread-safe. */
    public static final class FixedClock implements Clock {
        final AtomicLong nanos = new AtomicLong(1_000_000_000L);

        @Override
        public long nanos() {
            return nanos.get();
        }

        @Override
        public long millis() {
            return nanos.get() / 1_000_000;
        }

        public void forward(long millis) {
            nanos.addAndGet(millis * 1_000_000);
        }
    }

    /** Queues tasks until the test runs them. Thread-safe. */
    public static final class ManualExecutor implements Executor {
        private final ArrayDeque<Runnable> tasks = new ArrayDeque<>();

        @Override
        public void execute(Runnable task) {
            synchronized (tasks) {
                tasks.add(task);
                tasks.notifyAll();
            }
        }

        /** Waits for the next task, and runs it. */
        public void runNext(Duration timeout) throws InterruptedException {
            long end = System.nanoTime() + timeout.toNanos();
            Runnable next;
            synchronized (tasks) {
                while ((next = tasks.poll()) == null) {
                    long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
                    if (left <= 0) {
                        throw new AssertionError("no task after " + timeout);
                    }
                    tasks.wait(left);
                }
            }
            next.run();
        }

        public int runAll() {
            int n = 0;
            while (true) {
                Runnable next;
                synchronized (tasks) {
                    next = tasks.poll();
                }
                if (next == null) {
                    return n;
                }
                next.run();
                n++;
            }
        }
    }

    /** A request's head. */
    public record TestHead(@Nullable String authority, String path, Map<String, String> headers)
            implements VirtualHosts.Head {
        public static TestHead of(@Nullable String authority, String path) {
            return new TestHead(authority, path, Map.of());
        }

        @Override
        public String method() {
            return "POST";
        }

        @Override
        public @Nullable String header(String lowerCaseName) {
            return headers.get(lowerCaseName);
        }
    }

    /** An exchange that keeps its reply. Thread-safe as far as tests need. */
    public static final class TestExchange extends InMemoryExchange {
        String query = "";
        public final StringBuffer streamed = new StringBuffer();
        volatile boolean streamEnded;
        private volatile int streaming;
        final CompletableFuture<UpstreamResponse> response = new CompletableFuture<>();

        public TestExchange(String method, String path, Map<String, String> given, String body) {
            super(method, path, List.of(), Fakes.region(body));
            headers.putAll(given);
        }

        public static TestExchange post(String path, String body) {
            return new TestExchange("POST", path, Map.of(), body);
        }

        @Override
        public int status() {
            return streaming == 0 ? super.status() : streaming;
        }

        @Override
        public String query() {
            return query;
        }

        @Override
        public String pathParameter(int index) {
            int from = path().indexOf("/models/") + "/models/".length();
            int colon = path().indexOf(':');
            return path().substring(from, colon < 0 ? path().length() : colon);
        }

        @Override
        public void reply(HttpReply r) {
            super.reply(r);
            response.complete(new UpstreamResponse(r.status(), List.of(), Fakes.region(Fakes.text(r.content()))));
        }

        @Override
        public ResponseStream stream(HttpReply head) {
            streaming = head.status();
            body().release();
            return new ResponseStream() {
                @Override
                public void send(ResponseBody piece) {
                    streamed.append(Fakes.text(piece));
                }

                @Override
                public void end() {
                    streamEnded = true;
                }

                @Override
                public void abort() {
                    streamEnded = true;
                }

                @Override
                public long unsentBytes() {
                    return 0;
                }
            };
        }
    }

    /** A gRPC call that records its responses. */
    public static class TestCall implements GrpcCall {
        public final String path;
        final Map<String, String> metadata = new HashMap<>();
        public final List<String> sent = new ArrayList<>();

        public @Nullable ErrorCode code;

        @Nullable String message;

        long deadline = Long.MAX_VALUE;

        public TestCall(String path) {
            this.path = path;
        }

        @Override
        public String path() {
            return path;
        }

        @Override
        public @Nullable String metadata(String lowerCaseName) {
            return metadata.get(lowerCaseName);
        }

        @Override
        public void metadata(BiConsumer<String, String> each) {
            metadata.forEach(each);
        }

        @Override
        public long deadlineNanos() {
            return deadline;
        }

        @Override
        public long arrivedNanos() {
            return 0;
        }

        @Override
        public boolean inEventLoop() {
            return true;
        }

        @Override
        public boolean isReady() {
            return true;
        }

        @Override
        public void setReading(boolean reading) {}

        @Override
        public void send(ResponseBody m) {
            sent.add(text(m));
        }

        @Override
        public void sendAndClose(ResponseBody m) {
            sent.add(text(m));
            close(ErrorCode.OK, null);
        }

        @Override
        public void close(ErrorCode c, @Nullable String m) {
            if (code == null) {
                code = c;
                message = m;
            }
        }
    }

    /** Virtual hosts whose routes the test calls by itself. Thread-safe as far as tests need. */
    public static final class TestVirtualHostFactory implements VirtualHosts.VirtualHostFactory {
        final List<TestVirtualHost> created = new ArrayList<>();

        @Nullable VirtualHosts listening;

        @Override
        public synchronized VirtualHosts.VirtualHost virtualHost(
                List<HttpRoute> routes, List<GrpcMethod> methods, String prefix) {
            TestVirtualHost site = new TestVirtualHost(routes, methods, prefix);
            created.add(site);
            return site;
        }

        @Override
        public VirtualHosts.Listener listen(String address, int port, VirtualHosts.VirtualHost site) {
            return listen(address, port, head -> site);
        }

        @Override
        public VirtualHosts.Listener listen(String address, int port, VirtualHosts hosts) {
            listening = hosts;
            return new VirtualHosts.Listener() {
                @Override
                public int port() {
                    return 4711;
                }

                @Override
                public void close() {
                    listening = null;
                }
            };
        }
    }

    /** Finds routes by verb and a template's text before and after its only placeholder. */
    public record TestVirtualHost(List<HttpRoute> routes, List<GrpcMethod> methods, String prefix)
            implements VirtualHosts.VirtualHost {
        public void handle(TestExchange exchange) {
            for (HttpRoute route : routes) {
                if ((route.method().equals(exchange.method()) || route.method().equals(HttpRoute.ANY))
                        && matches(route.template(), exchange.path())) {
                    try {
                        route.handler().handle(exchange);
                    } catch (ServingException e) {
                        exchange.fail(e);
                    }
                    return;
                }
            }
            throw new AssertionError("no route for " + exchange.path());
        }

        private static boolean matches(String template, String path) {
            if (template.equals("/{rest...}")) {
                return true;
            }
            int open = template.indexOf('{');
            int close = template.indexOf('}');
            return open < 0
                    ? template.equals(path)
                    : path.startsWith(template.substring(0, open)) && path.endsWith(template.substring(close + 1));
        }

        public GrpcListener start(TestCall call) {
            for (GrpcMethod method : methods) {
                if (method.path().equals(call.path) || method.path().equals("/*")) {
                    return method.handler().start(call);
                }
            }
            throw new AssertionError("no method " + call.path);
        }

        @Override
        public CompletionStage<UpstreamResponse> call(
                String method, String target, List<UpstreamClient.Header> headers, MemoryRegion body) {
            Map<String, String> map = new HashMap<>();
            headers.forEach(h -> map.put(h.name(), h.value()));
            TestExchange exchange = new TestExchange(method, target, map, text(body));
            body.release();
            handle(exchange);
            return exchange.response;
        }
    }

    /** A codec that keeps requests until the test answers them. */
    public static final class HoldingCodec implements ProtocolCodec {
        public final List<HttpExchange> requests = new ArrayList<>();
        public final List<GrpcCall> calls = new ArrayList<>();
        public final List<String> events = new ArrayList<>();

        @Override
        public String name() {
            return "holding";
        }

        @Override
        public List<HttpRoute> httpRoutes() {
            return List.of(
                    HttpRoute.post("/v1/models/{model}:predict", Operation.INFERENCE, this::hold),
                    HttpRoute.post("/v1/models/{model}:explain", Operation.INFERENCE, this::hold),
                    HttpRoute.get("/v1/models/{model}", Operation.INFERENCE, this::hold),
                    HttpRoute.get("/v2/health/ready", Operation.INFERENCE, x -> x.reply(HttpReply.json(200, "{}"))));
        }

        private synchronized void hold(HttpExchange x) {
            requests.add(x);
        }

        @Override
        public List<GrpcMethod> grpcMethods() {
            return List.of(new GrpcMethod("/s/Infer", GrpcMethod.Kind.UNARY, Operation.INFERENCE, call -> {
                calls.add(call);
                return new RecordingListener(events);
            }));
        }

        public void answer(int i, int status) {
            requests.get(i).reply(HttpReply.json(status, "{\"n\":" + i + "}"));
        }
    }

    /** Records what is sent to it. */
    record RecordingListener(List<String> events) implements GrpcListener {
        @Override
        public void onMessage(MemoryRegion message) {
            events.add("message " + text(message));
        }

        @Override
        public void onHalfClose() {
            events.add("half-close");
        }

        @Override
        public void onCancel() {
            events.add("cancel");
        }
    }

    /** Records forwarded requests. */
    public static final class TestUpstream implements UpstreamClient {
        record Sent(HttpExchange exchange, Address address, String path, ForwardOptions options) {}

        public record SentCall(GrpcCall call, Address address, List<String> events) {}

        public record SentRequest(
                String method, String url, List<Header> headers, String body, ForwardOptions options) {}

        final List<Sent> sent = new ArrayList<>();
        public final List<SentCall> calls = new ArrayList<>();
        final List<SentRequest> requests = new ArrayList<>();
        final CompletableFuture<UpstreamResponse> response = new CompletableFuture<>();

        @Override
        public void forward(HttpExchange exchange, Address address, String path, ForwardOptions options) {
            sent.add(new Sent(exchange, address, path, options));
        }

        @Override
        public GrpcListener forward(GrpcCall call, Address address, ForwardOptions options) {
            List<String> events = new ArrayList<>();
            calls.add(new SentCall(call, address, events));
            return new RecordingListener(events);
        }

        @Override
        public CompletionStage<UpstreamResponse> send(
                String method, String url, List<Header> headers, byte[] body, ForwardOptions options) {
            requests.add(new SentRequest(method, url, headers, new String(body, StandardCharsets.UTF_8), options));
            return response;
        }

        @Override
        public void close() {}
    }

    /** Records requests that need another protocol. */
    public static final class TestTranscoder implements ProtocolTranscoder {
        public record PendingRequest(HttpExchange exchange, UpstreamClient.UnaryCalls grpc) {}

        public final List<PendingRequest> exchanges = new ArrayList<>();

        record Transcoded(GrpcCall call, VirtualHosts.VirtualHost rest, List<String> events) {}

        final List<Transcoded> calls = new ArrayList<>();

        @Override
        public void overGrpc(HttpExchange exchange, UpstreamClient.UnaryCalls grpc) {
            exchanges.add(new PendingRequest(exchange, grpc));
        }

        @Override
        public GrpcListener overRest(GrpcCall call, VirtualHosts.VirtualHost rest) {
            List<String> events = new ArrayList<>();
            calls.add(new Transcoded(call, rest, events));
            return new RecordingListener(events);
        }
    }
}
