// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Threads;
import io.nereid.tensor.ByteBudget;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.ResponseStream;
import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.codec.http2.DefaultHttp2DataFrame;
import io.netty.handler.codec.http2.DefaultHttp2Headers;
import io.netty.handler.codec.http2.DefaultHttp2HeadersFrame;
import io.netty.handler.codec.http2.Http2DataFrame;
import io.netty.handler.codec.http2.Http2FrameCodecBuilder;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.codec.http2.Http2HeadersFrame;
import io.netty.handler.codec.http2.Http2MultiplexHandler;
import io.netty.handler.codec.http2.Http2Settings;
import io.netty.handler.codec.http2.Http2StreamChannel;
import io.netty.handler.codec.http2.Http2StreamChannelBootstrap;
import io.netty.util.ReferenceCountUtil;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** HTTP exchanges over HTTP/2, with Netty's HTTP/2 client. */
class H2Test {
    private static final ByteBudget BUDGET = new ByteBudget(100 << 20);
    private static final Rig RIG = new Rig(o -> o.budget(BUDGET).maxBodyBytes(20 << 20));
    private static final MultiThreadIoEventLoopGroup LOOP =
            new MultiThreadIoEventLoopGroup(1, Threads.named("h2-client"), NioIoHandler.newFactory());
    private static final Channel CHANNEL = connect(RIG.port);

    @AfterAll
    static void stop() {
        CHANNEL.close();
        LOOP.shutdownGracefully(0, 1, TimeUnit.SECONDS);
        RIG.close();
    }

    private static Channel connect(int port) {
        return new Bootstrap()
                .group(LOOP)
                .channel(NioSocketChannel.class)
                .handler(new ChannelInitializer<Channel>() {
                    @Override
                    protected void initChannel(Channel ch) {
                        ch.pipeline()
                                .addLast(
                                        Http2FrameCodecBuilder.forClient()
                                                .initialSettings(Http2Settings.defaultSettings()
                                                        .initialWindowSize(1 << 20))
                                                .build(),
                                        new Http2MultiplexHandler(new ChannelInboundHandlerAdapter()));
                    }
                })
                .connect("127.0.0.1", port)
                .syncUninterruptibly()
                .channel();
    }

    private record Reply(Http2Headers headers, byte[] body) {
        String status() {
            return headers.status().toString();
        }

        String text() {
            return new String(body, StandardCharsets.UTF_8);
        }
    }

    /** Collects a reply. */
    private static final class Collect extends ChannelInboundHandlerAdapter {
        final CompletableFuture<Reply> reply = new CompletableFuture<>();
        final BlockingQueue<String> pieces = new LinkedBlockingQueue<>();
        private final ByteArrayOutputStream body = new ByteArrayOutputStream();
        private Http2Headers headers = new DefaultHttp2Headers();

        @Override
        public void channelRead(ChannelHandlerContext ctx, Object message) {
            boolean end = false;
            if (message instanceof Http2HeadersFrame h) {
                headers = h.headers();
                end = h.isEndStream();
            } else if (message instanceof Http2DataFrame d) {
                byte[] b = new byte[d.content().readableBytes()];
                d.content().readBytes(b);
                pieces.add(new String(b, StandardCharsets.UTF_8));
                body.writeBytes(b);
                end = d.isEndStream();
            }
            ReferenceCountUtil.release(message);
            if (end) {
                reply.complete(new Reply(headers, body.toByteArray()));
            }
        }

        @Override
        public void channelInactive(ChannelHandlerContext ctx) {
            reply.completeExceptionally(new IllegalStateException("stream closed"));
        }
    }

    private static Http2StreamChannel open(Collect collect) {
        return new Http2StreamChannelBootstrap(CHANNEL)
                .handler(collect)
                .open()
                .syncUninterruptibly()
                .getNow();
    }

    private static Reply ask(String method, String path, byte[] body, boolean tellLength, String... headers)
            throws Exception {
        Collect collect = new Collect();
        Http2StreamChannel stream = open(collect);
        Http2Headers h = new DefaultHttp2Headers()
                .method(method)
                .path(path)
                .scheme("http")
                .authority("x");
        if (tellLength) {
            h.setInt("content-length", body.length);
        }
        for (int i = 0; i < headers.length; i += 2) {
            h.add(headers[i], headers[i + 1]);
        }
        if (body.length == 0) {
            stream.writeAndFlush(new DefaultHttp2HeadersFrame(h, true));
        } else {
            stream.write(new DefaultHttp2HeadersFrame(h, false));
            ByteBuf data = Unpooled.wrappedBuffer(body);
            stream.writeAndFlush(new DefaultHttp2DataFrame(data, true));
        }
        return collect.reply.get(20, TimeUnit.SECONDS);
    }

    @Test
    void routesAreTheSameAsOverHttp1() throws Exception {
        byte[] none = {};
        assertThat(ask("GET", "/ok", none, false).text()).isEqualTo("{\"ok\":true}");
        assertThat(ask("GET", "/items/a%20b/sub/c", none, false).text()).isEqualTo("a b|c");
        assertThat(ask("GET", "/query?q=1", none, false).text()).isEqualTo("1");
        assertThat(ask("GET", "/header", none, false, "x-test", "v").text()).isEqualTo("v");
        assertThat(ask("GET", "/nope", none, false).status()).isEqualTo("404");
        Reply r = ask("POST", "/ok", new byte[10], true);
        assertThat(r.status()).isEqualTo("405");
        assertThat(r.headers().get("allow")).hasToString("GET, HEAD");
        assertThat(ask("HEAD", "/ok", none, false).headers().get("content-length"))
                .hasToString("11");
        assertThat(ask("GET", "/throw", none, false).status()).isEqualTo("500");
        assertThat(ask("GET", "/text/5000", none, false, "accept-encoding", "gzip")
                        .headers()
                        .get("content-encoding"))
                .hasToString("gzip");
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 10_000, 100_000, 6_000_000})
    void bodiesComeBackWithAndWithoutALength(int size) throws Exception {
        byte[] body = new byte[size];
        new Random(size).nextBytes(body);
        assertThat(ask("POST", "/echo", body, true).body()).isEqualTo(body);
        assertThat(ask("POST", "/echo-elsewhere", body, false).body()).isEqualTo(body);
        Rig.released(BUDGET);
    }

    @Test
    void bodiesOverTheLimitAreRejected() throws Exception {
        assertThat(ask("POST", "/echo", new byte[(20 << 20) + 1], true).status())
                .isEqualTo("413");
        assertThat(ask("POST", "/echo", new byte[(20 << 20) + 1], false).status())
                .isEqualTo("413");
        assertThat(ask("POST", "/echo", new byte[10], true, "content-encoding", "br")
                        .status())
                .isEqualTo("501");
        assertThat(ask("POST", "/echo", new byte[10], true, "content-encoding", "gzip")
                        .status())
                .isEqualTo("400");
        Rig.released(BUDGET);
    }

    @Test
    void aGrpcMethodWithoutItsContentTypeIs415() throws Exception {
        assertThat(ask("POST", "/t.T/Unary", new byte[10], true, "content-type", "application/json")
                        .status())
                .isEqualTo("415");
        assertThat(ask("POST", "/t.T/Unary", new byte[10], true, "content-type", "application/grpcx")
                        .status())
                .isEqualTo("415");
    }

    @Test
    void unknownGrpcEncodingsAreUnimplementedAndTheKnownOnesNamed() throws Exception {
        Reply r = ask(
                "POST",
                "/t.T/Unary",
                new byte[5],
                false,
                "content-type",
                "application/grpc",
                "grpc-encoding",
                "snappy");
        assertThat(r.headers().get("grpc-status")).hasToString("12");
        assertThat(r.headers().get("grpc-accept-encoding")).hasToString("identity,deflate,gzip");
    }

    @Test
    void malformedGrpcMessagesAreTheClientsFault() throws Exception {
        String[] grpc = {"content-type", "application/grpc"};
        assertThat(ask("POST", "/t.T/Unary", new byte[] {2, 0, 0, 0, 0}, false, grpc)
                        .headers()
                        .get("grpc-status"))
                .hasToString("3");
        assertThat(ask("POST", "/t.T/Unary", new byte[] {0, 0, 0, 0, 9, 1}, false, grpc)
                        .headers()
                        .get("grpc-status"))
                .hasToString("3");
        assertThat(ask("POST", "/t.T/Unary", new byte[] {1, 0, 0, 0, 1, 1}, false, grpc)
                        .headers()
                        .get("grpc-status"))
                .hasToString("3");
        assertThat(ask("POST", "/t.T/Unary", new byte[0], false, grpc).headers().get("grpc-status"))
                .hasToString("12");
        assertThat(ask("POST", "/t.T/Park", new byte[10], false, grpc).headers().get("grpc-status"))
                .hasToString("12");
        Reply r = ask(
                "POST", "/t.T/Unary", new byte[5], false, "content-type", "application/grpc", "grpc-timeout", "soon");
        assertThat(r.headers().get("grpc-status")).hasToString("3");
        RIG.parkedCalls.clear();
        RIG.events.clear();
    }

    private static Http2StreamChannel park(Collect collect) {
        Http2StreamChannel stream = open(collect);
        stream.writeAndFlush(new DefaultHttp2HeadersFrame(
                new DefaultHttp2Headers().method("GET").path("/park").scheme("http"), true));
        return stream;
    }

    private static ResponseBody piece(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return new ResponseBody(bytes, bytes.length);
    }

    @Test
    void aReplyInPiecesArrivesPieceByPiece() throws Exception {
        Collect collect = new Collect();
        Http2StreamChannel stream = park(collect);
        HttpExchange parked = RIG.parkedExchange();
        ResponseStream reply = parked.stream(HttpReply.text(201, "text/plain", "a"));
        assertThat(collect.pieces.poll(10, TimeUnit.SECONDS)).isEqualTo("a");
        reply.send(piece("bc"));
        assertThat(collect.pieces.poll(10, TimeUnit.SECONDS)).isEqualTo("bc");
        assertThat(collect.reply).isNotDone();
        reply.send(piece(""));
        reply.send(piece("d"));
        reply.end();
        Reply whole = collect.reply.get(10, TimeUnit.SECONDS);
        assertThat(whole.text()).isEqualTo("abcd");
        assertThat(whole.status()).isEqualTo("201");
        assertThat(whole.headers().get("content-length")).isNull();
        stream.close();
        Reply fromLoop = ask("GET", "/stream/3", new byte[0], false);
        assertThat(fromLoop.text()).isEqualTo("<0,1,2,");
        assertThat(ask("GET", "/headers", new byte[0], false, "x-a", "1").text())
                .contains("x-a=1;");
    }

    @Test
    void aClientThatDoesNotReadLetsBytesPileUp() throws Exception {
        Collect collect = new Collect();
        Http2StreamChannel stream = park(collect);
        stream.config().setAutoRead(false);
        HttpExchange parked = RIG.parkedExchange();
        ResponseStream reply = parked.stream(HttpReply.text(200, "text/plain", ""));
        String text = "x".repeat(1 << 20);
        for (int i = 0; i < 8; i++) {
            reply.send(piece(text));
        }
        assertThat(reply.unsentBytes()).isGreaterThan(4 << 20);
        stream.config().setAutoRead(true);
        stream.read();
        reply.end();
        assertThat(collect.reply.get(20, TimeUnit.SECONDS).body()).hasSize(8 << 20);
        stream.close();
    }

    @Test
    void aResetCancelsAReplyInPieces() throws Exception {
        Collect collect = new Collect();
        Http2StreamChannel stream = park(collect);
        HttpExchange parked = RIG.parkedExchange();
        ResponseStream reply = parked.stream(HttpReply.text(200, "text/plain", "a"));
        assertThat(collect.pieces.poll(10, TimeUnit.SECONDS)).isEqualTo("a");
        stream.close();
        assertThat(RIG.event()).isEqualTo("cancel");
        reply.send(piece("b"));
        reply.end();
        assertThat(ask("GET", "/ok", new byte[0], false).status()).isEqualTo("200");
    }

    @Test
    void anAbortedReplyIsReset() throws Exception {
        Collect collect = new Collect();
        park(collect);
        RIG.parkedExchange().stream(HttpReply.text(200, "text/plain", "a")).abort();
        assertThat(collect.reply).failsWithin(java.time.Duration.ofSeconds(10));
        assertThat(ask("GET", "/ok", new byte[0], false).status()).isEqualTo("200");
    }

    @Test
    void aResetCancelsTheExchange() throws Exception {
        Collect collect = new Collect();
        Http2StreamChannel stream = open(collect);
        stream.writeAndFlush(new DefaultHttp2HeadersFrame(
                new DefaultHttp2Headers().method("GET").path("/park").scheme("http"), true));
        HttpExchange parked = RIG.parkedExchange();
        stream.close();
        assertThat(RIG.event()).isEqualTo("cancel");
        parked.reply(HttpReply.json(200, "{}"));
        assertThat(ask("GET", "/ok", new byte[0], false).status()).isEqualTo("200");
    }

    @Test
    void dataThatCrossesAResetOnTheWireDoesNotCostTheConnection() throws Exception {
        try (RawHttp2 c = new RawHttp2(RIG.port)) {
            c.headers(1, false, ":method", "POST", ":scheme", "http", ":path", "/echo", "content-length", "100000000");
            for (int i = 0; i < 1000; i++) {
                c.data(1, false, "x");
            }
            assertThat(c.outcome(1).status()).isEqualTo("413");
            c.headers(3, false, ":method", "POST", ":scheme", "http", ":path", "/echo", "x", "a\rb");
            for (int i = 0; i < 1000; i++) {
                c.data(3, false, "x");
            }
            assertThat(c.outcome(3).what()).isEqualTo("reset");
            c.headers(5, true, ":method", "GET", ":scheme", "http", ":path", "/ok");
            assertThat(c.outcome(5).status()).isEqualTo("200");
        }
    }

    @Test
    void starIsATargetOfOptionsAlone() throws Exception {
        assertThat(ask("OPTIONS", "*", new byte[0], false).status()).isEqualTo("404");
        assertThatThrownBy(() -> ask("GET", "*", new byte[0], false)).hasMessageContaining("stream closed");
    }

    @Test
    void aHostFieldMayRepeatTheAuthority() throws Exception {
        for (String host : new String[] {"x", "X", "x:80"}) {
            assertThat(ask("GET", "/ok", new byte[0], false, "host", host).status())
                    .as(host)
                    .isEqualTo("200");
        }
    }
}
