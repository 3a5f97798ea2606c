// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.connection;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/**
 * Sends the requests of a command to one server, with its credentials. Redirects are not followed, so that credentials
 * reach no other server. Thread-safe.
 *
 * <pre>{@code
 * HttpText response = connection.exchange("GET", "/v2", null, null);
 * ServingException refused = connection.refusal(response.status(), "the server's text");
 * }</pre>
 */
public final class ServerConnection implements ApiConnection {
    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(5);

    private final ServerAddress server;
    private final @Nullable Credentials credentials;
    private final Missing missing;
    private final @Nullable SSLContext context;

    /** Created on first use, as it starts threads and most commands do without. */
    private volatile @Nullable HttpClient http;

    /**
     * What a command shows to a server.
     *
     * @param token the API key or token
     * @param source where the token is from, for messages
     */
    record Credentials(String token, String source) {
        /** Without the token. */
        @Override
        public String toString() {
            return "Credentials[source=" + source + "]";
        }
    }

    /** @param missing what is said when no server responds */
    ServerConnection(ServerAddress server, @Nullable Credentials credentials, ClientTls tls, Missing missing) {
        this.server = server;
        this.credentials = credentials;
        this.missing = missing;
        this.context = server.encrypted() ? tls.context() : null;
    }

    private HttpClient http() {
        HttpClient ready = http;
        if (ready != null) {
            return ready;
        }
        synchronized (this) {
            ready = http;
            if (ready == null) {
                HttpClient.Builder client = HttpClient.newBuilder()
                        .version(HttpClient.Version.HTTP_1_1)
                        .followRedirects(HttpClient.Redirect.NEVER)
                        .connectTimeout(CONNECT_TIMEOUT);
                if (context != null) {
                    client.sslContext(context);
                } else if (!server.encrypted()) {
                    client.sslContext(NoTls.context());
                }
                ready = client.build();
                http = ready;
            }
            return ready;
        }
    }

    /** The server. */
    public ServerAddress server() {
        return server;
    }

    @Override
    public String url() {
        return server.url();
    }

    @Override
    public boolean isCluster() {
        return false;
    }

    @Override
    public String unexpected() {
        return "is that the port of the control API? It is 8090 unless --control-port is set";
    }

    /** What decides whether the server is trusted, with the client's certificate; null for the Java runtime's. */
    public @Nullable SSLContext context() {
        return context;
    }

    /** The token that is sent; empty without credentials. */
    public String token() {
        return credentials == null ? "" : credentials.token();
    }

    /** Builds a request for a path, with the credentials. */
    @Override
    public HttpRequest.Builder request(String path) {
        HttpRequest.Builder request =
                HttpRequest.newBuilder(URI.create(server.url() + path)).header("user-agent", "nereid");
        if (credentials != null) {
            request.header("authorization", "Bearer " + credentials.token());
        }
        return request;
    }

    @Override
    public <T> HttpResponse<T> send(HttpRequest request, HttpResponse.BodyHandler<T> handler) {
        try {
            return http().send(request, handler);
        } catch (IOException e) {
            throw unreachable(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw ServingException.of(ErrorCode.CANCELLED, "interrupted");
        }
    }

    /**
     * Sends one request and reads the response as a text: what a command does that asks the server once.
     *
     * @param contentType the type of the body; null without one
     * @param body the body; null for a request without one
     * @throws ServingException UNAVAILABLE when there is no response, CANCELLED when the thread is interrupted
     */
    public HttpText exchange(String method, String path, @Nullable String contentType, @Nullable String body) {
        if (server.encrypted() || !PlainHttp.usable()) {
            HttpRequest.Builder request = request(path);
            if (contentType != null) {
                request.header("content-type", contentType);
            }
            HttpResponse<String> response = send(
                    request.method(
                                    method,
                                    body == null
                                            ? HttpRequest.BodyPublishers.noBody()
                                            : HttpRequest.BodyPublishers.ofString(body))
                            .build(),
                    HttpResponse.BodyHandlers.ofString());
            return new HttpText(response.statusCode(), response.body());
        }
        Map<String, String> headers = new LinkedHashMap<>();
        headers.put("user-agent", "nereid");
        if (credentials != null) {
            headers.put("authorization", "Bearer " + credentials.token());
        }
        if (contentType != null) {
            headers.put("content-type", contentType);
        }
        try {
            return PlainHttp.exchange(
                    method,
                    URI.create(server.url() + path),
                    headers,
                    body == null ? null : body.getBytes(StandardCharsets.UTF_8),
                    (int) CONNECT_TIMEOUT.toMillis());
        } catch (IOException e) {
            throw unreachable(e);
        }
    }

    @Override
    public ServingException unreachable(IOException e) {
        if (e instanceof ConnectException) {
            return ServingException.of(
                    ErrorCode.UNAVAILABLE, "no " + missing.what() + " responds at " + server.url(), missing.remedy());
        }
        String why = e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
        return ServingException.wrap(
                ErrorCode.UNAVAILABLE, "the request to " + server.url() + " failed: " + why, remedy(e, why), e);
    }

    private @Nullable String remedy(IOException e, String why) {
        if (!server.encrypted()) {
            return why.contains("no bytes") || why.contains("EOF") || why.contains("reset")
                    ? "if the port is encrypted, its URL begins with https://"
                    : null;
        }
        if (why.contains("PKIX") || why.contains("unable to find valid certification path")) {
            return "the authority of its certificate is not known here; name it with --ca-cert FILE";
        }
        if (why.contains("No subject alternative") || why.contains("No name matching")) {
            return "use a name that the server's certificate is for";
        }
        if (why.contains("certificate_required") || why.contains("bad_certificate")) {
            return "the server asks for a certificate of the client: --client-cert FILE --client-key FILE";
        }
        return e instanceof SSLException ? "if the port is not encrypted, its URL begins with http://" : null;
    }

    @Override
    public @Nullable ServingException refusal(int status, String text) {
        if (status == 401) {
            return ServingException.of(
                    ErrorCode.UNAUTHENTICATED,
                    server.url() + " does not accept "
                            + (credentials == null ? "requests without credentials" : credentials.source()) + ": "
                            + text,
                    credentials == null
                            ? "set NEREID_TOKEN or --token-file FILE, or store a token with: nereid login "
                                    + server.url()
                            : "get a valid token (on the server: nereid keys create NAME), then: nereid login "
                                    + server.url());
        }
        if (status == 403) {
            return ServingException.of(
                    ErrorCode.PERMISSION_DENIED,
                    server.url() + " refuses this with "
                            + (credentials == null ? "no credentials" : credentials.source()) + ": " + text,
                    credentials == null
                            ? "set NEREID_TOKEN or --token-file FILE, or store a token with: nereid login "
                                    + server.url()
                            : "use a token whose role has the permission (on the server: nereid keys create NAME"
                                    + " --role ROLE)");
        }
        if (status >= 300 && status < 400) {
            return ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    server.url() + " answered HTTP " + status
                            + ", a redirect, which is not followed as credentials are for one server only",
                    "use the URL of the server that it leads to");
        }
        return null;
    }
}
