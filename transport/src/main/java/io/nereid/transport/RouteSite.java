// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.api.VirtualHosts;
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

/** Routes and methods made ready: the server's own, or those of a virtual host. Immutable. */
final class RouteSite implements VirtualHosts.Site {
    private static final String ANY_METHOD = "/*";

    private final ServerContext server;
    private final EventLoops loops;
    private final RouteTable table;
    private final Map<CharSequence, GrpcMethod> methods = new HashMap<>();
    private final @Nullable GrpcMethod anyMethod;
    private final String prefix;

    /**
     * Makes routes ready.
     *
     * @param prefix what paths begin with and routes leave out; empty for nothing
     * @throws ServingException FAILED_PRECONDITION when two routes or methods are the same, INVALID_ARGUMENT for a
     *     prefix that is none
     */
    RouteSite(ServerContext server, EventLoops loops, List<HttpRoute> routes, List<GrpcMethod> methods, String prefix) {
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

    /** The gRPC method of a path, if there is one. */
    @Nullable
    GrpcMethod method(CharSequence path) {
        GrpcMethod named = methods.get(path);
        return named == null ? anyMethod : named;
    }

    /** Whether a method has just this path. */
    boolean names(CharSequence path) {
        return methods.containsKey(path);
    }

    /** A request's line with its route, from its verb and its target. */
    RequestLine line(String method, String target) {
        return line(RequestLine.of(method, target));
    }

    /** The line with its route, and its path without the site's prefix. */
    RequestLine line(RequestLine line) {
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
    public CompletionStage<UpstreamClient.Answer> call(
            String method, String target, List<UpstreamClient.Header> headers, MemoryRegion body) {
        EventLoop loop = loop();
        RequestLine line = line(method, target);
        CompletableFuture<UpstreamClient.Answer> answer = new CompletableFuture<>();
        HttpReply refusal = null;
        MemoryRegion plain = body;
        long reserved = 0;
        int bytesIn = body.size();
        int most = server.options.maxBodyBytes();
        Encoding encoding =
                bytesIn == 0 ? Encoding.IDENTITY : Encoding.of(LocalExchange.first(headers, "content-encoding"));
        if (encoding == null) {
            refusal = Exchange.unsupportedEncoding();
        } else if (bytesIn > most) {
            refusal = HttpReply.error(
                    413, "the request body of " + bytesIn + " bytes is larger than the limit of " + most + " bytes");
        } else if (encoding != Encoding.IDENTITY) {
            ByteBuf bytes = body.toByteBuf(0, bytesIn);
            try {
                ByteBuf inflated = encoding.inflate(bytes, most, server.options.budget());
                reserved = inflated.capacity();
                plain = MemoryRegion.ofByteBuf(inflated);
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
                    "no room for a request body of " + bytesIn + " bytes: the server's limit of "
                            + server.options.budget().limit()
                            + " bytes of requests in flight is reached (retry later)");
        }
        LocalExchange exchange =
                new LocalExchange(server, loop, line, headers, plain, bytesIn, reserved, server.nanos(), answer);
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

    /** The loop that the calling thread is, or any. */
    private EventLoop loop() {
        for (EventExecutor executor : loops.group) {
            if (executor.inEventLoop()) {
                return (EventLoop) executor;
            }
        }
        return loops.group.next();
    }
}
