// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.credential;

import com.nimbusds.jose.KeySourceException;
import com.nimbusds.jose.jwk.JWK;
import com.nimbusds.jose.jwk.JWKSelector;
import com.nimbusds.jose.jwk.JWKSet;
import com.nimbusds.jose.jwk.source.JWKSource;
import com.nimbusds.jose.proc.SecurityContext;
import com.nimbusds.jose.util.JSONObjectUtils;
import io.nereid.access.config.JwtConfig;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.text.ParseException;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The public keys of a token issuer (a JSON Web Key Set, RFC 7517), from a file or a URL. Fetched by {@link #refresh} in
 * the background: at the start, at intervals, and soon after a token names a key that is not known, at most once in ten
 * seconds. While a fetch fails, the keys from before stay, so that a rotation at the issuer leaves no gap.
 *
 * <p>Fetches go to the issuer's host and to the hosts that the configuration allows, follow no redirects, and are bounded
 * in time and size. Thread-safe.
 */
public final class JwkSource implements JWKSource<SecurityContext> {
    private static final Logger LOG = LoggerFactory.getLogger(JwkSource.class);
    private static final Duration TIMEOUT = Duration.ofSeconds(5);
    private static final int MOST_BYTES = 1 << 20;
    private static final long EARLIEST_RETRY_NANOS = Duration.ofSeconds(10).toNanos();

    private final JwtConfig config;
    private final Path base;
    private final Runnable wanted;
    private final Clock clock;
    private final AtomicLong nextDemand = new AtomicLong(Long.MIN_VALUE);
    private volatile @Nullable JWKSet keys;
    private volatile boolean demanded;
    private @Nullable HttpClient client;

    /**
     * Creates a source that knows no keys yet.
     *
     * @param base the folder that a relative file path refers to
     * @param wanted called, at most once in ten seconds and on any thread, when {@link #refresh} should run soon
     */
    public JwkSource(JwtConfig config, Path base, Runnable wanted, Clock clock) {
        this.config = config;
        this.base = base;
        this.wanted = wanted;
        this.clock = clock;
    }

    @Override
    public List<JWK> get(JWKSelector selector, @Nullable SecurityContext context) throws KeySourceException {
        JWKSet now = keys;
        List<JWK> found = now == null ? List.of() : selector.select(now);
        if (found.isEmpty()) {
            demand();
        }
        if (now == null) {
            throw new KeySourceException("no keys yet");
        }
        return found;
    }

    private void demand() {
        long now = clock.nanos();
        long due = nextDemand.get();
        if ((due == Long.MIN_VALUE || now - due >= 0) && nextDemand.compareAndSet(due, now + EARLIEST_RETRY_NANOS)) {
            demanded = true;
            wanted.run();
        }
    }

    /** Whether a token has named a key that is not known since the last refresh. */
    boolean demanded() {
        return demanded;
    }

    /** Fetches the keys; blocks for some seconds at most. Failures are logged. */
    public synchronized void refresh() {
        demanded = false;
        try {
            keys = fetch();
        } catch (IOException | ParseException | ServingException e) {
            LOG.warn(
                    "the keys of the token issuer '{}' could not be read{}: {}",
                    config.issuer(),
                    keys == null ? "; tokens are refused until they can" : "; those from before stay in use",
                    e.getMessage());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private JWKSet fetch() throws IOException, ParseException, InterruptedException {
        String from = config.jwks();
        if (from.isEmpty()) {
            String issuer = config.issuer().endsWith("/")
                    ? config.issuer().substring(0, config.issuer().length() - 1)
                    : config.issuer();
            String document = get(URI.create(issuer + "/.well-known/openid-configuration"));
            Object claimed = JSONObjectUtils.parse(document).get("issuer");
            if (!config.issuer().equals(claimed)) {
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION, "its openid-configuration is of the issuer '" + claimed + "'");
            }
            Object uri = JSONObjectUtils.parse(document).get("jwks_uri");
            return JWKSet.parse(get(URI.create(String.valueOf(uri))));
        }
        if (from.startsWith("https://") || from.startsWith("http://")) {
            return JWKSet.parse(get(URI.create(from)));
        }
        Path file = base.resolve(from.startsWith("file://") ? from.substring(7) : from);
        return JWKSet.parse(Files.readString(file));
    }

    private String get(URI uri) throws IOException, InterruptedException {
        check(uri);
        HttpClient http = client;
        if (http == null) {
            http = HttpClient.newBuilder()
                    .connectTimeout(TIMEOUT)
                    .followRedirects(HttpClient.Redirect.NEVER)
                    .build();
            client = http;
        }
        HttpResponse<InputStream> response = http.send(
                HttpRequest.newBuilder(uri)
                        .timeout(TIMEOUT)
                        .header("accept", "application/json")
                        .build(),
                HttpResponse.BodyHandlers.ofInputStream());
        try (InputStream body = response.body()) {
            byte[] bytes = body.readNBytes(MOST_BYTES + 1);
            if (response.statusCode() != 200) {
                throw new IOException(uri + " answered " + response.statusCode());
            }
            if (bytes.length > MOST_BYTES) {
                throw new IOException(uri + " is larger than " + MOST_BYTES + " bytes");
            }
            return new String(bytes, StandardCharsets.UTF_8);
        }
    }

    /** Rejects a URL of a host that is not allowed, or without encryption unless it is on this machine. */
    private void check(URI uri) {
        String host = uri.getHost() == null ? "" : uri.getHost().toLowerCase(Locale.ROOT);
        boolean local = host.equals("localhost") || host.equals("127.0.0.1");
        Set<String> allowed = new HashSet<>();
        for (String text : List.of(config.issuer(), config.jwks())) {
            if (text.startsWith("https://") || text.startsWith("http://")) {
                String named = URI.create(text).getHost();
                if (named != null) {
                    allowed.add(named.toLowerCase(Locale.ROOT));
                }
            }
        }
        config.hosts().forEach(h -> allowed.add(h.toLowerCase(Locale.ROOT)));
        if (!allowed.contains(host)) {
            throw ServingException.of(
                    ErrorCode.PERMISSION_DENIED,
                    "keys may not be fetched from '" + host + "' (allowed: " + String.join(", ", allowed) + ")",
                    "add it to allowedHosts");
        }
        if (!"https".equals(uri.getScheme()) && !("http".equals(uri.getScheme()) && local)) {
            throw ServingException.of(
                    ErrorCode.PERMISSION_DENIED, "keys may not be fetched from '" + uri + "' (expected: https)");
        }
    }
}
