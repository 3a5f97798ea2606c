// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.kubeconfig;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.app.connection.ApiConnection;
import io.nereid.app.connection.ClientTls;
import io.nereid.app.connection.ConnectionOptions.Overrides;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.transport.tls.PemFile;
import java.io.IOException;
import java.net.ConnectException;
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.BaseStream;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/**
 * Sends requests to the API server of a cluster with the credentials of a kubeconfig. A credential plugin runs before the
 * first request, when its credentials have expired, and once more when the server does not accept them. Credentials are
 * sent over encrypted connections only. A request that a busy server puts off is repeated. Thread-safe.
 */
final class ClusterConnection implements ApiConnection {
    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(10);

    private static final int RETRIES = 10;
    private static final long LONGEST_PAUSE = 10;

    private final KubeContext context;
    private final Overrides overrides;
    private final Clock clock = Clock.system();
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock") private @Nullable Session session;

    /** A client with a certificate and a token, both of a plugin or of the kubeconfig. */
    private record Session(
            HttpClient http,
            @Nullable String authorization,
            @Nullable Instant expires) {}

    /** @param overrides what the command line says, which wins over the kubeconfig */
    ClusterConnection(KubeContext context, Overrides overrides) {
        this.context = context;
        this.overrides = overrides;
        if (context.cluster().unverified() && !overrides.unverified() && overrides.authorities() == null) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    context.file() + ": the cluster \"" + context.cluster().name()
                            + "\" has insecure-skip-tls-verify, by which any server would get the credentials",
                    "set certificate-authority-data there, or --ca-cert FILE; or accept it for this command with"
                            + " --insecure-skip-tls-verify");
        }
    }

    @Override
    public String url() {
        return context.cluster().server().url();
    }

    @Override
    public boolean isCluster() {
        return true;
    }

    @Override
    public String unexpected() {
        return "is that the API server of a Kubernetes cluster? See the server of the cluster \""
                + context.cluster().name() + "\" in " + context.file();
    }

    @Override
    public HttpRequest.Builder request(String path) {
        HttpRequest.Builder request =
                HttpRequest.newBuilder(URI.create(url() + path)).header("user-agent", "nereid");
        context.user().impersonation().forEach((name, values) -> values.forEach(value -> request.header(name, value)));
        return request;
    }

    @Override
    public <T> HttpResponse<T> send(HttpRequest request, HttpResponse.BodyHandler<T> handler) {
        Session used = session(null);
        try {
            HttpResponse<T> response = exchange(used, request, handler);
            if (response.statusCode() == 401 && plugin() != null) {
                drop(response);
                used = session(used);
                response = exchange(used, request, handler);
            }
            for (int retries = 0; retries < RETRIES; retries++) {
                long seconds = retryAfter(response);
                if (seconds < 0) {
                    break;
                }
                drop(response);
                // The time that the API server asks for; nothing ends it early but an interrupt.
                boolean unused = new CountDownLatch(1).await(seconds, TimeUnit.SECONDS);
                response = exchange(used, request, handler);
            }
            return response;
        } catch (IOException e) {
            throw unreachable(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw ServingException.of(ErrorCode.CANCELLED, "interrupted");
        }
    }

    private static void drop(HttpResponse<?> response) {
        if (response.body() instanceof BaseStream<?, ?> unread) {
            unread.close();
        }
    }

    /** How long a busy server asks to wait, in seconds; negative for an answer that is final. */
    private static long retryAfter(HttpResponse<?> response) {
        if (response.statusCode() != 429 && response.statusCode() != 503) {
            return -1;
        }
        String asked = response.headers().firstValue("retry-after").orElse("");
        return asked.matches("\\d{1,4}") ? Math.min(Long.parseLong(asked), LONGEST_PAUSE) : -1;
    }

    private <T> HttpResponse<T> exchange(Session used, HttpRequest request, HttpResponse.BodyHandler<T> handler)
            throws IOException, InterruptedException {
        HttpRequest.Builder builder = HttpRequest.newBuilder(request, (name, value) -> true);
        String authorization = used.authorization();
        if (context.user().tokenFile() != null && overrides.token() == null) {
            authorization = "Bearer " + tokenOfFile();
        }
        // as with kubectl, nothing secret goes over a connection that is not encrypted
        if (authorization != null && context.cluster().server().encrypted()) {
            builder.setHeader("authorization", authorization);
        }
        return used.http().send(builder.build(), handler);
    }

    private @Nullable ExecPlugin plugin() {
        return overrides.token() != null || !context.cluster().server().encrypted()
                ? null
                : context.user().plugin();
    }

    /**
     * The credentials to use now.
     *
     * @param refused those that the server has not accepted
     */
    private Session session(@Nullable Session refused) {
        lock.lock();
        try {
            Session known = session;
            boolean expired = known != null
                    && known.expires() != null
                    && known.expires().isBefore(Instant.ofEpochMilli(clock.millis()));
            if (known == null || expired || known == refused) {
                known = open();
                session = known;
            }
            return known;
        } finally {
            lock.unlock();
        }
    }

    private Session open() {
        KubeUser user = context.user();
        PemFile certificate = overrides.certificate() != null ? overrides.certificate() : user.certificate();
        PemFile key = overrides.certificate() != null ? overrides.key() : user.key();
        String authorization = user.token() != null ? "Bearer " + user.token() : null;
        if (user.basic() != null) {
            authorization =
                    "Basic " + Base64.getEncoder().encodeToString(user.basic().getBytes(StandardCharsets.UTF_8));
        }
        Instant expires = null;
        ExecPlugin plugin = plugin();
        if (plugin != null) {
            ExecPlugin.Credential credential = plugin.run(context.cluster());
            expires = credential.expires();
            authorization = credential.token() == null ? null : "Bearer " + credential.token();
            if (credential.certificate() != null && overrides.certificate() == null) {
                certificate = credential.certificate();
                key = credential.key();
            }
        }
        if (overrides.token() != null) {
            authorization = "Bearer " + overrides.token();
        }
        HttpClient.Builder client = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1)
                .followRedirects(HttpClient.Redirect.NEVER)
                .connectTimeout(CONNECT_TIMEOUT);
        if (context.cluster().proxy() != null) {
            client.proxy(ProxySelector.of(context.cluster().proxy()));
        }
        if (context.cluster().server().encrypted()) {
            PemFile authorities = overrides.authorities() != null
                    ? overrides.authorities()
                    : context.cluster().authorities();
            SSLContext tls = new ClientTls(authorities, certificate, key, overrides.unverified()).context();
            if (tls != null) {
                client.sslContext(tls);
            }
        }
        return new Session(client.build(), authorization, expires);
    }

    private String tokenOfFile() {
        java.nio.file.Path file = context.user().tokenFile();
        try {
            return Files.readString(java.util.Objects.requireNonNull(file)).strip();
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.UNAUTHENTICATED,
                    context.file() + ": the user \"" + context.user().name() + "\" has the tokenFile '" + file
                            + "', which cannot be read: " + e.getClass().getSimpleName(),
                    "check the path and the mode of the file",
                    e);
        }
    }

    @Override
    public ServingException unreachable(IOException e) {
        String via = context.cluster().proxy() == null
                ? ""
                : " through the proxy " + context.cluster().proxy().getHostString() + ":"
                        + context.cluster().proxy().getPort();
        if (e instanceof ConnectException) {
            return ServingException.of(
                    ErrorCode.UNAVAILABLE,
                    "no API server responds at " + context.shown() + via,
                    "check that the cluster runs, and the server's address in the kubeconfig");
        }
        String why = e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
        return ServingException.wrap(
                ErrorCode.UNAVAILABLE,
                "the request to " + context.shown() + via + " failed: " + why,
                remedy(e, why),
                e);
    }

    private @Nullable String remedy(IOException e, String why) {
        if (why.contains("PKIX") || why.contains("unable to find valid certification path")) {
            return "its certificate is not of the authority in the kubeconfig: set certificate-authority-data of the"
                    + " cluster \"" + context.cluster().name() + "\", or --ca-cert FILE";
        }
        if (why.contains("No subject alternative") || why.contains("No name matching")) {
            return "use a server address with a name that the certificate is for";
        }
        return e instanceof SSLException
                ? "check the server's address and the client certificate in the kubeconfig"
                : null;
    }

    @Override
    public @Nullable ServingException refusal(int status, String text) {
        if (status == 401) {
            String credentials = overrides.token() != null
                    ? "the token of the command line"
                    : context.user().shown();
            boolean hidden = !context.cluster().server().encrypted();
            return ServingException.of(
                    ErrorCode.UNAUTHENTICATED,
                    context.shown() + " does not accept " + credentials + ": " + text,
                    hidden
                            ? "credentials are not sent to http:// addresses: use the https:// address of the server"
                            : context.user().remedy());
        }
        if (status >= 300 && status < 400) {
            return ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    context.shown() + " answered HTTP " + status
                            + ", a redirect, which is not followed as credentials are for one server only",
                    "use the address of the server that it leads to");
        }
        return null;
    }
}
