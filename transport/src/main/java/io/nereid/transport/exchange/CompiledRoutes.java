// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.exchange;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.NettyBuffers;
import io.nereid.transport.EventLoops;
import io.nereid.transport.ServerContext;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.api.UpstreamResponse;
import io.nereid.transport.api.VirtualHosts;
import io.nereid.transport.codec.ContentEncoding;
import io.nereid.transport.routing.RequestLine;
import io.nereid.transport.routing.RouteTable;
import io.netty.buffer.ByteBuf;
import io.netty.channel.EventLoop;
import io.netty.util.AsciiString;
import io.netty.util.concurrent.EventExecutor;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * The routes and gRPC methods of the server or of one virtual host, compiled for lookup. Also serves requests from
 * within the process, without a socket. Immutable.
 */
public final class CompiledRoutes implements VirtualHosts.VirtualHost {
    private static final String ANY_METHOD = "/*";

    private final ServerContext server;
    private final EventLoops loops;
    private final RouteTable table;
    private final Map<CharSequence, GrpcMethod> methods = new HashMap<>();
    private final @Nullable GrpcMethod anyMethod;
    private final String prefix;

    /**
     * Compiles routes and methods.
     *
     * @param prefix the path prefix that requests carry and the routes' templates leave out; empty for none
     * @throws ServingException FAILED_PRECONDITION when two routes or methods are the same, INVALID_ARGUMENT for a
     *     malformed prefix
     */
    public CompiledRoutes(
            ServerContext server, EventLoops loops, List<HttpRoute> routes, List<GrpcMethod> methods, String prefix) {
        this.server = server;
        this.loops = loops;
        this.table = new RouteTable(routes);
        GrpcMethod any = null;
        for (GrpcMethod method : methods) {
            boolean twice;
            if (method.path().equals(ANY_METHOD)) {
                twice = any != null;
                any = method;
            } else {
                twice = this.methods.put(new AsciiString(method.path()), method) != null;
            }
            if (twice) {
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION, "two codecs serve the gRPC method " + method.path());
            }
        }
        this.anyMethod = any;
        String p = prefix.endsWith("/") ? prefix.substring(0, prefix.length() - 1) : prefix;
        if (!p.isEmpty() && !p.startsWith("/")) {
            throw ServingException.invalidArgument(
                    "path prefix '" + prefix + "' does not start with '/'", "write it as in /serving/default/iris");
        }
        this.prefix = p;
    }

    ServerContext server() {
        return server;
    }

    /** The gRPC method of a path, or null. */
    public @Nullable GrpcMethod method(CharSequence path) {
        GrpcMethod named = methods.get(path);
        return named == null ? anyMethod : named;
    }

    /** Whether a gRPC method is registered under exactly this path. */
    public boolean names(CharSequence path) {
        return methods.containsKey(path);
    }

    /** The request line with its route, from method and target. */
    public RequestLine line(String method, String target) {
        return line(RequestLine.of(method, target));
    }

    /** The request line with its route, and with its path without the prefix. */
    public RequestLine line(RequestLine line) {
        String sent = line.sent();
        String path = sent;
        if (!prefix.isEmpty()) {
            int length = prefix.length();
            if (!sent.startsWith(prefix) || sent.length() > length && sent.charAt(length) != '/') {
                return new RequestLine(
                        line.method(), sent, line.query(), new RouteTable.Match(404, null, NONE, "Not Found"), sent);
            }
            path = sent.length() == length ? "/" : sent.substring(length);
        }
        RouteTable.Match match;
        try {
            match = table.match(line.method(), path);
        } catch (ServingException e) {
            match = new RouteTable.Match(400, null, NONE, e.describe());
        }
        return new RequestLine(line.method(), path, line.query(), match, sent);
    }

    private static final String[] NONE = {};

    @Override
    public CompletionStage<UpstreamResponse> call(
            String method, String target, List<UpstreamClient.Header> headers, MemoryRegion body) {
        EventLoop loop = loop();
        RequestLine line = line(method, target);
        CompletableFuture<UpstreamResponse> answer = new CompletableFuture<>();
        HttpReply refusal = null;
        MemoryRegion plain = body;
        long reserved = 0;
        int bytesIn = body.size();
        int most = server.options.maxBodyBytes();
        ContentEncoding encoding = bytesIn == 0
                ? ContentEncoding.IDENTITY
                : ContentEncoding.of(InProcessExchange.first(headers, "content-encoding"));
        if (encoding == null) {
            refusal = AbstractHttpExchange.unsupportedEncoding();
        } else if (bytesIn > most) {
            refusal = HttpReply.error(
                    413, "the request body of " + bytesIn + " bytes is larger than the limit of " + most + " bytes");
        } else if (encoding != ContentEncoding.IDENTITY) {
            ByteBuf bytes = NettyBuffers.buffer(body, 0, bytesIn);
            try {
                ByteBuf inflated = encoding.inflate(bytes, most, server.options.budget());
                reserved = inflated.capacity();
                plain = NettyBuffers.region(inflated);
                body.release();
            } catch (ServingException e) {
                int status = e.remedy() != null ? 429 : e.code() == ErrorCode.RESOURCE_EXHAUSTED ? 413 : 400;
                refusal = HttpReply.error(status, e.describe());
            } finally {
                bytes.release();
            }
        } else if (server.options.budget().tryReserve(bytesIn)) {
            reserved = bytesIn;
        } else {
            refusal = HttpReply.error(
                    429,
                    "cannot accept a request body of " + bytesIn + " bytes: the server's limit of "
                            + server.options.budget().limit()
                            + " bytes of requests in flight is reached (retry later)");
        }
        InProcessExchange exchange =
                new InProcessExchange(server, loop, line, headers, plain, bytesIn, reserved, server.nanos(), answer);
        answer.whenComplete((a, thrown) -> {
            if (answer.isCancelled()) {
                loop.execute(exchange::gone);
            }
        });
        if (refusal != null) {
            server.stats.requestRejected();
            server.stats.exchangeStarted();
            exchange.reply(refusal);
        } else {
            exchange.dispatch();
        }
        return answer;
    }

    /** The calling thread's event loop, so that an in-process call does not change threads; or any other one. */
    private EventLoop loop() {
        for (EventExecutor executor : loops.group) {
            if (executor.inEventLoop()) {
                return (EventLoop) executor;
            }
        }
        return loops.group.next();
    }
}
