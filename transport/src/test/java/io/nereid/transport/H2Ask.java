// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.codec.http2.DefaultHttp2Headers;
import io.netty.handler.codec.http2.DefaultHttp2HeadersFrame;
import io.netty.handler.codec.http2.Http2DataFrame;
import io.netty.handler.codec.http2.Http2FrameCodecBuilder;
import io.netty.handler.codec.http2.Http2HeadersFrame;
import io.netty.handler.codec.http2.Http2MultiplexHandler;
import io.netty.handler.codec.http2.Http2StreamChannel;
import io.netty.handler.codec.http2.Http2StreamChannelBootstrap;
import io.netty.util.ReferenceCountUtil;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** Sends one request over HTTP/2 without TLS, with any authority. Holds no state. */
public final class H2Ask {
    private H2Ask() {}

    /** Status, a space, and the body. */
    public static String get(int port, String authority, String path) throws Exception {
        CompletableFuture<String> answer = new CompletableFuture<>();
        try (EventLoops loops = new EventLoops(1, false)) {
            Channel parent = new Bootstrap()
                    .group(loops.group)
                    .channel(NioSocketChannel.class)
                    .handler(new ChannelInitializer<Channel>() {
                        @Override
                        protected void initChannel(Channel c) {
                            c.pipeline()
                                    .addLast(
                                            Http2FrameCodecBuilder.forClient().build(),
                                            new Http2MultiplexHandler(new ChannelInboundHandlerAdapter()));
                        }
                    })
                    .connect("127.0.0.1", port)
                    .sync()
                    .channel();
            Http2StreamChannel stream = new Http2StreamChannelBootstrap(parent)
                    .handler(new ChannelInboundHandlerAdapter() {
                        private final StringBuilder text = new StringBuilder();

                        @Override
                        public void channelRead(ChannelHandlerContext ctx, Object message) {
                            boolean end = false;
                            if (message instanceof Http2HeadersFrame h) {
                                text.append(h.headers().status()).append(' ');
                                end = h.isEndStream();
                            } else if (message instanceof Http2DataFrame d) {
                                ByteBuf bytes = d.content();
                                text.append(bytes.toString(StandardCharsets.UTF_8));
                                end = d.isEndStream();
                            }
                            ReferenceCountUtil.release(message);
                            if (end) {
                                answer.complete(text.toString());
                            }
                        }
                    })
                    .open()
                    .sync()
                    .getNow();
            stream.writeAndFlush(new DefaultHttp2HeadersFrame(
                    new DefaultHttp2Headers()
                            .method("GET")
                            .scheme("http")
                            .authority(authority)
                            .path(path),
                    true));
            return answer.get(10, TimeUnit.SECONDS);
        }
    }
}
