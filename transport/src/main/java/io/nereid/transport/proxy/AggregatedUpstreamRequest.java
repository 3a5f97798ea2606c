// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.proxy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.ForwardOptions;
import io.nereid.transport.api.UpstreamClient.Header;
import io.nereid.transport.api.UpstreamResponse;
import io.nereid.transport.exchange.InProcessExchange;
import io.netty.buffer.ByteBuf;
import io.netty.handler.codec.http.HttpHeaders;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** A request whose response is aggregated and delivered as a whole. Confined to its event loop. */
final class AggregatedUpstreamRequest extends UpstreamRequest {
    final CompletableFuture<UpstreamResponse> answer = new CompletableFuture<>();
    private final ForwardOptions terms;
    private final List<Header> headers = new ArrayList<>();
    private final List<ByteBuf> pieces = new ArrayList<>();
    private int status;
    private long length;

    AggregatedUpstreamRequest(
            EventLoopHttpClient client,
            EventLoopHttpClient.Key key,
            String method,
            String target,
            HttpHeaders headers,
            ByteBuf body,
            ForwardOptions terms) {
        super(client, key, method, target, headers, body, terms.timeout());
        this.terms = terms;
    }

    @Override
    void onHead(int answerStatus, HttpHeaders answerHeaders) {
        status = answerStatus;
        for (Map.Entry<String, String> header : answerHeaders) {
            headers.add(new Header(header.getKey().toLowerCase(Locale.ROOT), header.getValue()));
        }
    }

    @Override
    void onData(ByteBuf bytes) {
        length += bytes.readableBytes();
        if (length > Math.min(terms.maxBytes(), Integer.MAX_VALUE - 64)) {
            fail(ServingException.of(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    "the response of " + key + " is larger than the limit of " + terms.maxBytes() + " bytes"));
            return;
        }
        pieces.add(bytes.retainedSlice());
    }

    @Override
    void onEnd() {
        MemoryRegion body =
                pieces.isEmpty() ? MemoryRegion.empty() : InProcessExchange.joined(pieces.toArray(new ByteBuf[0]));
        pieces.clear();
        if (!answer.complete(new UpstreamResponse(status, List.copyOf(headers), body))) {
            body.release();
        }
    }

    @Override
    void onFailure(ServingException e, boolean begun) {
        drop();
        answer.completeExceptionally(e);
    }

    void left() {
        if (!over()) {
            cancel();
            drop();
        }
    }

    private void drop() {
        pieces.forEach(ByteBuf::release);
        pieces.clear();
    }
}
