// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import io.nereid.tensor.MemoryRegion;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * One HTTP request whose body is complete, and its one reply. The request's parts are immutable and may be read on any
 * thread until {@link #reply}; the body has been inflated when it came with gzip or deflate.
 */
public interface HttpExchange {
    /** The verb in capitals. */
    String method();

    /** The path as sent, without the query. */
    String path();

    /** The query as sent, without the {@code ?}; empty when there is none. */
    default String query() {
        return "";
    }

    /** The value of the route's {@code index}-th placeholder, percent-decoded. */
    String pathParameter(int index);

    /** The first value of a query parameter, percent-decoded, or null. */
    @Nullable
    String queryParameter(String name);

    /** The first value of a header, by lower-case name, or null. */
    @Nullable
    String header(String lowerCaseName);

    /** The body; empty when there is none. The exchange owns it and drops it after the reply; retain to keep it. */
    MemoryRegion body();

    /** When the request's head arrived, in nanoseconds of the server's clock. */
    long arrivedNanos();

    /** Runs {@code action} once, on the event loop, if the client goes away before the reply. At most one action. */
    void onCancel(Runnable action);

    /** Whether the calling thread is this connection's event loop. */
    boolean inEventLoop();

    /**
     * Sends the reply; exactly once, from any thread. The reply's text is copied before this returns, its tensors are
     * owned by the transport from here on, whatever happens. After a client has gone the reply is dropped.
     */
    void reply(HttpReply reply);

    /**
     * Begins a reply whose body is sent piece by piece, instead of {@link #reply}; the reply's own content is the first
     * piece. Any thread. The body of the request is dropped; the cancel action still runs if the client goes away before
     * {@link ResponseStream#end}.
     */
    ResponseStream stream(HttpReply head);

    /** Tells every header of the request, names in lower case, in the order of arrival. */
    void headers(BiConsumer<String, String> each);

    /** The exchange as the transport made it, where this one is a wrapper around it. */
    default HttpExchange origin() {
        return this;
    }

    /** Ends the exchange with the transport's mapping of an error to {@code {"error": text}}. */
    default void fail(io.nereid.base.ServingException e) {
        reply(HttpReply.error(e));
    }
}
