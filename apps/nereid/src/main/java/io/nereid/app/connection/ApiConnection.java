// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.connection;

import io.nereid.base.ServingException;
import java.io.IOException;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import org.jspecify.annotations.Nullable;

/**
 * How a command sends requests to one server with its credentials: a server of Nereid, or the API server of a Kubernetes
 * cluster. Redirects are not followed, so that credentials reach no other server. Implementations are thread-safe.
 *
 * <pre>{@code
 * HttpResponse<String> response = connection.send(connection.request("/api/v1/namespaces").build(), BodyHandlers.ofString());
 * ServingException refused = connection.refusal(response.statusCode(), "the server's text");
 * }</pre>
 */
public interface ApiConnection {
    /** The server's URL, for messages. */
    String url();

    /** Whether the server is the API server of a Kubernetes cluster. */
    boolean isCluster();

    /** What to check when a response is not one of the API. */
    String unexpected();

    /** Builds a request for a path. */
    HttpRequest.Builder request(String path);

    /**
     * Sends a request.
     *
     * @throws ServingException UNAVAILABLE when there is no response, CANCELLED when the thread is interrupted
     */
    <T> HttpResponse<T> send(HttpRequest request, HttpResponse.BodyHandler<T> handler);

    /** The error of a request that got no response, or a part of one. */
    ServingException unreachable(IOException e);

    /**
     * The error of a response by which a server refuses the caller or sends it elsewhere; null for another status.
     *
     * @param text the server's message
     */
    @Nullable ServingException refusal(int status, String text);
}
