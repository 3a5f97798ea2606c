// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.proxy;

import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.NettyBuffers;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.ResponseStream;
import io.nereid.transport.exchange.InProcessExchange;
import io.netty.buffer.ByteBuf;
import io.netty.handler.codec.http.HttpHeaders;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * An exchange that is forwarded to an upstream server. A short response of known length is sent whole, any other one is
 * streamed to the client; reading from the upstream server pauses while the client is slow. Confined to its event loop.
 */
final class ProxyExchange extends UpstreamRequest {
    /** Responses up to this length are sent whole. */
    private static final int WHOLE = 64 << 10;

    /** Above this many unsent bytes reading pauses; it resumes at {@link #LOW}. */
    private static final long HIGH = 1 << 20;

    private static final long LOW = 256 << 10;
    private static final long POLL_MILLIS = 2;

    private final HttpExchange exchange;
    private final List<ByteBuf> pieces = new ArrayList<>();
    private @Nullable HttpReply head;
    private @Nullable ResponseStream stream;
    private boolean paused;

    ProxyExchange(
            EventLoopHttpClient client,
            EventLoopHttpClient.Key key,
            HttpExchange exchange,
            String target,
            HttpHeaders headers,
            ByteBuf body,
            Duration timeout) {
        super(client, key, exchange.method(), target, headers, body, timeout);
        this.exchange = exchange;
    }

    /** A piece of a body as content, without a copy where the buffer is direct; retains the buffer. */
    static ResponseBody content(ByteBuf bytes) {
        ResponseBody content = new ResponseBody(new byte[0], 0);
        int length = bytes.readableBytes();
        if (length > 0) {
            MemoryRegion region = bytes.hasMemoryAddress() || bytes.isDirect()
                    ? NettyBuffers.region(bytes.retainedSlice())
                    : NettyBuffers.region(NettyBuffers.allocator()
                            .directBuffer(length)
                            .writeBytes(bytes, bytes.readerIndex(), length));
            content.splice(Tensor.over("", DataType.UINT8, Shape.of(length), region, 0, length), 0);
        }
        return content;
    }

    @Override
    void onHead(int status, HttpHeaders answer) {
        HopByHopHeaders hops = new HopByHopHeaders();
        answer.getAll("connection").forEach(hops::connection);
        boolean bodiless = status == 204 || status == 304 || method.equals("HEAD");
        List<String> kept = new ArrayList<>();
        String type = "";
        for (Map.Entry<String, String> header : answer) {
            String name = header.getKey().toLowerCase(Locale.ROOT);
            if (name.equals("content-type") && type.isEmpty()) {
                type = header.getValue();
            } else if (!hops.drops(name) && (!name.equals("content-length") || bodiless && status != 204)) {
                kept.add(name);
                kept.add(header.getValue());
            }
        }
        HttpReply reply = new HttpReply(status, type, kept.toArray(new String[0]), new ResponseBody(new byte[0], 0));
        head = reply;
        long length = bodiless ? 0 : length(answer);
        if (length < 0 || length > WHOLE) {
            stream = exchange.stream(reply);
        }
    }

    /** The response's {@code content-length}; -1 when it has none, or is chunked. */
    private static long length(HttpHeaders answer) {
        String value = answer.get("content-length");
        try {
            return value == null || answer.contains("transfer-encoding") ? -1 : Long.parseLong(value.strip());
        } catch (NumberFormatException e) {
            return -1;
        }
    }

    @Override
    void onData(ByteBuf bytes) {
        ResponseStream open = stream;
        if (open == null) {
            pieces.add(bytes.retainedSlice());
            return;
        }
        open.send(content(bytes));
        if (!paused && open.unsentBytes() > HIGH) {
            paused = true;
            reading(false);
            resumeWhenSent(open);
        }
    }

    /** Polls until the client has taken most of what was sent, and then resumes reading. */
    private void resumeWhenSent(ResponseStream open) {
        client.loop.schedule(
                () -> {
                    if (over()) {
                        return;
                    }
                    if (open.unsentBytes() > LOW) {
                        resumeWhenSent(open);
                    } else {
                        paused = false;
                        reading(true);
                    }
                },
                POLL_MILLIS,
                TimeUnit.MILLISECONDS);
    }

    @Override
    void onEnd() {
        ResponseStream open = stream;
        if (open != null) {
            open.end();
            return;
        }
        HttpReply begun = java.util.Objects.requireNonNull(head);
        ResponseBody content = begun.content();
        if (!pieces.isEmpty()) {
            MemoryRegion body = InProcessExchange.joined(pieces.toArray(new ByteBuf[0]));
            pieces.clear();
            content = new ResponseBody(new byte[0], 0)
                    .splice(Tensor.over("", DataType.UINT8, Shape.of(body.size()), body, 0, body.size()), 0);
        }
        exchange.reply(new HttpReply(begun.status(), begun.contentType(), begun.headers(), content));
    }

    @Override
    void onFailure(ServingException e, boolean begun) {
        drop();
        ResponseStream open = stream;
        if (open != null) {
            open.abort();
        } else {
            exchange.fail(e);
        }
    }

    /** Called when the client has disconnected. */
    void left(ServingException e) {
        if (!over()) {
            cancel();
            onFailure(e, true);
        }
    }

    private void drop() {
        pieces.forEach(ByteBuf::release);
        pieces.clear();
    }
}
