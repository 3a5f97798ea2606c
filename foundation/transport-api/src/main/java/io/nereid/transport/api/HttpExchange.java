// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import io.nereid.base.access.Caller;
import io.nereid.base.access.Permission;
import io.nereid.tensor.MemoryRegion;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * One HTTP request, with its complete body, and the response to it. The parts of the request are immutable and may be
 * read on any thread until {@link #reply}; a body in gzip or deflate has been decompressed. {@link #reply} or
 * {@link #stream} must be called exactly once.
 */
public interface HttpExchange {
    /** The HTTP method in capitals. */
    String method();

    /** The path as sent, without the query. */
    String path();

    /** The query as sent, without the {@code ?}; empty without a query. */
    default String query() {
        return "";
    }

    /** The value of the route's {@code index}-th placeholder, percent-decoded. */
    String pathParameter(int index);

    /** The first value of a query parameter, percent-decoded, or null. */
    @Nullable String queryParameter(String name);

    /** The first value of a header, by lower-case name, or null. */
    @Nullable String header(String lowerCaseName);

    /** The body; empty without a body. The exchange owns it and releases it after the reply; retain it to keep it. */
    MemoryRegion body();

    /** When the request's head arrived, in nanoseconds of the server's clock. */
    long arrivedNanos();

    /** Runs {@code action} once, on the event loop, if the client disconnects before the reply. At most one action. */
    void onCancel(Runnable action);

    /** Whether the calling thread is this connection's event loop. */
    boolean inEventLoop();

    /**
     * Sends the response; exactly once, from any thread. The text is copied before this method returns; the transport
     * owns the tensors from here on, on success and on failure. When the client has disconnected, the response is
     * dropped.
     */
    void reply(HttpReply reply);

    /**
     * Starts a streamed response, instead of {@link #reply}; the content of {@code head} is the first piece. Any
     * thread. The request body is released. The cancel action still runs if the client disconnects before
     * {@link ResponseStream#end}.
     */
    ResponseStream stream(HttpReply head);

    /** Passes every request header to {@code each}, names in lower case, in the order of arrival. */
    void headers(BiConsumer<String, String> each);

    /** Who makes the request. */
    default Caller caller() {
        HttpExchange origin = origin();
        return origin == this ? Caller.ANONYMOUS : origin.caller();
    }

    /**
     * Checks, beyond what the route needs, that the caller holds a permission for a model.
     *
     * @throws io.nereid.base.ServingException PERMISSION_DENIED when not
     */
    default void require(Permission permission, @Nullable String model) {
        caller().require(permission, model);
    }

    /** The exchange that the transport created, when this one wraps it. */
    default HttpExchange origin() {
        return this;
    }

    /** Replies with the transport's mapping of an error to {@code {"error": text}}. */
    default void fail(io.nereid.base.ServingException e) {
        reply(HttpReply.error(e));
    }
}
