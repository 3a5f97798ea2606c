// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.rest;

import io.nereid.base.ServingException;
import io.nereid.observe.Observability;
import io.nereid.observe.RequestTiming;
import io.nereid.observe.RequestTrace;
import io.nereid.observe.RequestTrace.Event;
import io.nereid.protocols.v2.codec.CodecContext;
import io.nereid.spi.ModelRef;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import org.jspecify.annotations.Nullable;

/**
 * Records the receive and send events of HTTP requests in their traces, for requests that are traced. Holds no state.
 */
final class RestTrace {
    private RestTrace() {}

    /** Begins the trace of a request; null when it is neither traced nor asks for its times. */
    static @Nullable RequestTrace begin(CodecContext context, HttpExchange exchange, ModelRef model) {
        Observability observation = context.observation;
        RequestTrace trace = observation == Observability.NONE
                ? null
                : observation.trace(model.model(), exchange.header("traceparent"));
        String timing = exchange.header(RequestTiming.HEADER);
        if (timing != null && RequestTiming.asks(timing)) {
            trace = RequestTiming.of(trace, exchange.arrivedNanos());
        }
        if (trace != null) {
            trace.event(Event.HTTP_RECV_START, exchange.arrivedNanos());
            trace.event(Event.HTTP_RECV_END, context.clock.nanos());
        }
        return trace;
    }

    /** Sends the response and records it. */
    static void reply(CodecContext context, HttpExchange exchange, @Nullable RequestTrace trace, HttpReply reply) {
        if (trace == null) {
            exchange.reply(reply);
        } else {
            trace.event(Event.HTTP_SEND_START, context.clock.nanos());
            exchange.reply(reply);
            end(context, trace);
        }
    }

    /** Sends the error and records it. */
    static void fail(CodecContext context, HttpExchange exchange, @Nullable RequestTrace trace, ServingException e) {
        if (trace == null) {
            exchange.fail(e);
        } else {
            trace.event(Event.HTTP_SEND_START, context.clock.nanos());
            exchange.fail(e);
            end(context, trace);
        }
    }

    /** Ends the trace after the response. */
    static void end(CodecContext context, RequestTrace trace) {
        trace.event(Event.HTTP_SEND_END, context.clock.nanos());
        trace.end();
    }
}
