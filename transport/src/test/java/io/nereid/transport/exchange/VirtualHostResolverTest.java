// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.exchange;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCalls;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Operation;
import io.nereid.tensor.ByteBudget;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.H2Ask;
import io.nereid.transport.Rig;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.ResponseStream;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.api.UpstreamResponse;
import io.nereid.transport.api.VirtualHosts;
import io.nereid.transport.proxy.PooledUpstreamClientGrpcTest;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Virtual hosts by host, path prefix and port, over sockets and in process. */
class VirtualHostResolverTest {
    private final Map<String, VirtualHosts.VirtualHost> byHost = new ConcurrentHashMap<>();
    private final BlockingQueue<String> asked = new LinkedBlockingQueue<>();
    private final ByteBudget budget = new ByteBudget(1 << 20);
    private final Rig rig =
            new Rig(o -> o.virtualHosts(this::find).budget(budget).maxBodyBytes(100_000));
    private final BlockingQueue<HttpExchange> parked = new LinkedBlockingQueue<>();
    private final VirtualHosts.VirtualHost iris = rig.server.virtualHost(
            List.of(
                    HttpRoute.get(
                            "/who",
                            Operation.INFERENCE,
                            x -> x.reply(HttpReply.text(200, "text/plain", "iris " + x.path()))),
                    HttpRoute.post("/echo", Operation.INFERENCE, VirtualHostResolverTest::echo),
                    HttpRoute.get("/throw", Operation.INFERENCE, x -> {
                        throw ServingException.of(ErrorCode.NOT_FOUND, "no such thing");
                    }),
                    HttpRoute.get("/pieces", Operation.INFERENCE, VirtualHostResolverTest::pieces),
                    HttpRoute.get("/broken", Operation.INFERENCE, x -> {
                        ResponseStream s = x.stream(HttpReply.text(200, "text/plain", "half"));
                        s.abort();
                    }),
                    HttpRoute.get("/park", Operation.INFERENCE, x -> {
                        x.onCancel(() -> asked.add("cancelled"));
                        parked.add(x);
                    })),
            List.of(new GrpcMethod("/*", GrpcMethod.Kind.UNARY, Operation.INFERENCE, call -> new Rig.Quiet(rig) {
                @Override
                public void onHalfClose() {
                    byte[] text = ("iris " + call.path()).getBytes(StandardCharsets.UTF_8);
                    call.sendAndClose(new ResponseBody(text, text.length));
                }
            })),
            "");
    private final VirtualHosts.VirtualHost prefixed = rig.server.virtualHost(
            List.of(HttpRoute.get(
                    "/who",
                    Operation.INFERENCE,
                    x -> x.reply(HttpReply.text(200, "text/plain", "prefixed " + x.path())))),
            List.of(),
            "/serving/default/iris");

    private VirtualHosts.@Nullable VirtualHost find(VirtualHosts.Head head) {
        asked.add(head.method() + " " + head.path() + " " + head.authority() + " " + head.header("x-test"));
        if (head.path().startsWith("/serving/")) {
            return prefixed;
        }
        String authority = head.authority();
        if (authority == null) {
            return null;
        }
        String host = authority.replaceAll(":[0-9]+$", "");
        if (host.equals("refused.example")) {
            throw ServingException.of(ErrorCode.UNAVAILABLE, "no revision is ready");
        }
        if (host.equals("broken.example")) {
            throw new IllegalStateException("secret detail");
        }
        return byHost.get(host);
    }

    VirtualHostResolverTest() {
        byHost.put("iris.example", iris);
    }

    @AfterEach
    void stop() {
        rig.close();
    }

    private static void echo(HttpExchange x) {
        x.reply(new HttpReply(200, "application/octet-stream", new String[] {"X-More", "yes"}, Rig.content(x.body())));
    }

    private static void pieces(HttpExchange x) {
        ResponseStream s = x.stream(HttpReply.text(200, "text/plain", "a"));
        for (String piece : List.of("b", "", "c".repeat(10_000))) {
            byte[] b = piece.getBytes(StandardCharsets.US_ASCII);
            s.send(new ResponseBody(b, b.length));
        }
        s.end();
    }

    private static String get(String target, String host) {
        return "GET " + target + " HTTP/1.1\r\n" + host + "\r\n";
    }

    @Test
    void oneConnectionCarriesRequestsForManySites() throws IOException {
        try (Rig.Raw c = rig.connect()) {
            assertThat(c.ask(get("/who", "Host: iris.example\r\n")).text()).isEqualTo("iris /who");
            assertThat(c.ask(get("/ok", "Host: elsewhere\r\n")).text()).isEqualTo("{\"ok\":true}");
            assertThat(c.ask(get("/who", "Host: elsewhere\r\n")).status()).isEqualTo(404);
            assertThat(c.ask(get("/who", "Host: IRIS.Example:8080\r\nX-Test: 7\r\n"))
                            .text())
                    .isEqualTo("iris /who");
            assertThat(c.ask(get("/serving/default/iris/who?x=1", "Host: elsewhere\r\n"))
                            .text())
                    .isEqualTo("prefixed /who");
        }
        assertThat(asked)
                .containsExactly(
                        "GET /who iris.example null",
                        "GET /ok elsewhere null",
                        "GET /who elsewhere null",
                        "GET /who iris.example:8080 7",
                        "GET /serving/default/iris/who elsewhere null");
    }

    @Test
    void theSameRequestIsAskedForAgainAndMayGoElsewhere() throws IOException {
        try (Rig.Raw c = rig.connect()) {
            assertThat(c.ask(get("/who", "Host: iris.example\r\n")).status()).isEqualTo(200);
            byHost.remove("iris.example");
            assertThat(c.ask(get("/who", "Host: iris.example\r\n")).status()).isEqualTo(404);
        }
    }

    @Test
    void theHostOfATargetWinsOverTheHeader() throws IOException {
        try (Rig.Raw c = rig.connect()) {
            assertThat(c.ask(get("http://iris.example:80/who", "Host: other\r\n"))
                            .text())
                    .isEqualTo("iris /who");
            assertThat(c.ask(get("HTTP://me@Iris.Example/who", "Host: other\r\n"))
                            .text())
                    .isEqualTo("iris /who");
        }
    }

    @Test
    void aRequestWithoutHostIsRejectedAndOneOfHttp10UsesTheServersRoutes() throws IOException {
        try (Rig.Raw c = rig.connect()) {
            assertThat(c.ask(get("/who", "")).status()).isEqualTo(400);
        }
        try (Rig.Raw c = rig.connect()) {
            assertThat(c.ask("GET /ok HTTP/1.0\r\n\r\n").status()).isEqualTo(200);
        }
        assertThat(asked).containsExactly("GET /ok null null");
    }

    @Test
    void aPrefixEndsWithASegment() throws IOException {
        try (Rig.Raw c = rig.connect()) {
            assertThat(c.ask(get("/serving/default/irises/who", "Host: x\r\n")).status())
                    .isEqualTo(404);
            assertThat(c.ask(get("/serving/default/iris", "Host: x\r\n")).status())
                    .isEqualTo(404);
        }
    }

    @Test
    void anExceptionOfFindIsReportedAndTheConnectionStaysOpen() throws IOException {
        try (Rig.Raw c = rig.connect()) {
            Rig.Reply r = c.ask(get("/who", "Host: refused.example\r\n"));
            assertThat(r.status()).isEqualTo(503);
            assertThat(r.text()).isEqualTo("{\"error\":\"no revision is ready\"}");
            r = c.ask("POST /echo HTTP/1.1\r\nHost: broken.example\r\ncontent-length: 3\r\n\r\nabc");
            assertThat(r.status()).isEqualTo(500);
            assertThat(r.text()).doesNotContain("secret");
            assertThat(c.ask(get("/who", "Host: iris.example\r\n")).status()).isEqualTo(200);
        }
    }

    private String overH2(String host, String path) throws Exception {
        return H2Ask.get(rig.port, host, path);
    }

    @Test
    void http2FindsItsSiteByAuthorityAndByPrefix() throws Exception {
        assertThat(overH2("iris.EXAMPLE:99", "/who?q")).isEqualTo("200 iris /who");
        assertThat(overH2("else", "/who")).startsWith("404");
        assertThat(overH2("else", "/serving/default/iris/who")).isEqualTo("200 prefixed /who");
        assertThat(overH2("refused.example", "/who")).isEqualTo("503 {\"error\":\"no revision is ready\"}");
    }

    private String grpc(String authority, String method) {
        ManagedChannel channel = NettyChannelBuilder.forAddress("127.0.0.1", rig.port)
                .usePlaintext()
                .overrideAuthority(authority)
                .build();
        try {
            return new String(
                    ClientCalls.blockingUnaryCall(
                            channel,
                            PooledUpstreamClientGrpcTest.method(method, io.grpc.MethodDescriptor.MethodType.UNARY),
                            CallOptions.DEFAULT.withDeadlineAfter(10, TimeUnit.SECONDS),
                            new byte[] {'!'}),
                    StandardCharsets.UTF_8);
        } finally {
            channel.shutdownNow();
        }
    }

    @Test
    void gRpcFindsItsSiteByAuthorityWhereEveryMethodMayBeTaken() {
        assertThat(grpc("iris.example", "Whatever")).isEqualTo("iris /t.T/Whatever");
        assertThat(grpc("iris.example:81", "Unary")).isEqualTo("iris /t.T/Unary");
        assertThat(grpc("other", "Unary")).isEqualTo("!");
        assertThatThrownBy(() -> grpc("other", "Whatever"))
                .satisfies(t -> assertThat(Status.fromThrowable(t).getCode()).isEqualTo(Status.Code.UNIMPLEMENTED));
        assertThatThrownBy(() -> grpc("refused.example", "Unary")).satisfies(t -> {
            assertThat(Status.fromThrowable(t).getCode()).isEqualTo(Status.Code.UNAVAILABLE);
            assertThat(Status.fromThrowable(t).getDescription()).isEqualTo("no revision is ready");
        });
    }

    @Test
    void aPortOfItsOwnServesOneSiteWhateverTheHostAndClosesGently() throws Exception {
        VirtualHosts.Listener listener = rig.server.listen("127.0.0.1", 0, iris);
        try (Rig.Raw idle = new Rig.Raw(listener.port());
                Rig.Raw busy = new Rig.Raw(listener.port())) {
            assertThat(idle.ask(get("/who", "Host: other\r\n")).text()).isEqualTo("iris /who");
            assertThat(idle.ask(get("/ok", "Host: other\r\n")).status()).isEqualTo(404);
            busy.send(get("/park", "Host: x\r\n"));
            HttpExchange waiting = java.util.Objects.requireNonNull(parked.poll(10, TimeUnit.SECONDS));
            listener.close();
            assertThat(idle.closed()).isTrue();
            waiting.reply(HttpReply.json(200, "1"));
            Rig.Reply r = busy.read();
            assertThat(r.text()).isEqualTo("1");
            // Its event loop may not have received the drain event yet; then it closes without "connection: close".
            assertThat(r.header("connection")).isIn("close", null);
            assertThat(busy.closed()).isTrue();
        }
        assertThatThrownBy(() -> new Rig.Raw(listener.port()).close()).isInstanceOf(IOException.class);
        try (Rig.Raw c = rig.connect()) {
            assertThat(c.ask(get("/ok", "Host: x\r\n")).status()).isEqualTo(200);
        }
    }

    @Test
    void aPortThatIsTakenIsUnavailable() {
        assertThatThrownBy(() -> rig.server.listen("127.0.0.1", rig.port, iris))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE));
    }

    private static MemoryRegion region(byte[] bytes) {
        return MemoryRegion.copyOf(bytes, 0, bytes.length);
    }

    private UpstreamResponse call(String method, String target, byte[] body, UpstreamClient.Header... headers)
            throws Exception {
        return iris.call(method, target, List.of(headers), region(body))
                .toCompletableFuture()
                .get(10, TimeUnit.SECONDS);
    }

    private static String text(UpstreamResponse answer) {
        byte[] b = new byte[answer.body().size()];
        answer.body().getBytes(0, b, 0, b.length);
        answer.body().release();
        return new String(b, StandardCharsets.UTF_8);
    }

    @Test
    void aRouteIsCalledFromInside() throws Exception {
        UpstreamResponse answer = call("GET", "/who?x=1", new byte[0]);
        assertThat(answer.status()).isEqualTo(200);
        assertThat(text(answer)).isEqualTo("iris /who");
        answer = call("POST", "/echo", "x".repeat(50_000).getBytes(StandardCharsets.US_ASCII));
        assertThat(answer.headers())
                .containsExactly(
                        new UpstreamClient.Header("content-type", "application/octet-stream"),
                        new UpstreamClient.Header("x-more", "yes"));
        assertThat(text(answer)).hasSize(50_000);
        answer = call("GET", "/pieces", new byte[0]);
        assertThat(text(answer)).hasSize(10_002).startsWith("abccc");
        Rig.released(budget);
    }

    @Test
    void errorsInProcessAreResponsesToo() throws Exception {
        assertThat(text(call("GET", "/nothing", new byte[0]))).isEqualTo("{\"error\":\"Not Found\"}");
        UpstreamResponse answer = call("GET", "/throw", new byte[0]);
        assertThat(answer.status()).isEqualTo(404);
        assertThat(text(answer)).isEqualTo("{\"error\":\"no such thing\"}");
        answer = call("POST", "/echo", new byte[100_001]);
        assertThat(answer.status()).isEqualTo(413);
        answer.body().release();
        budget.tryReserve(1 << 20);
        answer = call("POST", "/echo", new byte[10]);
        assertThat(answer.status()).isEqualTo(429);
        answer.body().release();
        assertThatThrownBy(() -> call("GET", "/broken", new byte[0]))
                .isInstanceOf(ExecutionException.class)
                .hasMessageContaining("was aborted");
    }

    @Test
    void anInProcessCallCanBeCancelled() throws Exception {
        var pending = iris.call("GET", "/park", List.of(), MemoryRegion.empty()).toCompletableFuture();
        HttpExchange waiting = java.util.Objects.requireNonNull(parked.poll(10, TimeUnit.SECONDS));
        pending.cancel(true);
        assertThat(asked.poll(10, TimeUnit.SECONDS)).isEqualTo("cancelled");
        waiting.reply(HttpReply.json(200, "1"));
        assertThat(pending).isCancelled();
    }
}
