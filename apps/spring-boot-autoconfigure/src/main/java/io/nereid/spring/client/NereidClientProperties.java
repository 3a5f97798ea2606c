// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.client;

import io.nereid.client.options.Protocol;
import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * The properties {@code nereid.client}: the server to call. Immutable.
 *
 * <pre>{@code
 * nereid:
 *   client:
 *     url: grpcs://models.example.com:8443
 *     timeout: 2s
 *     tls:
 *       certificate-authorities: /etc/models/ca.pem
 * }</pre>
 *
 * @param enabled Whether a client is made.
 * @param url The server, http://HOST:PORT, https://…, grpc://… or grpcs://….
 * @param protocol The protocol. By default V2 over gRPC for grpc and grpcs, else V2 over REST.
 * @param apiKey A key or token, sent as authorization: Bearer.
 * @param headers Headers of each request.
 * @param timeout The time for a call, retries included.
 * @param connectTimeout The time for a connection to be made.
 * @param maxConnections The most connections at a time. By default 64 over REST and 1 over gRPC.
 * @param retries When calls are repeated.
 * @param tls Which servers are trusted, and the certificate to show.
 */
@ConfigurationProperties("nereid.client")
public record NereidClientProperties(
        @DefaultValue("true") boolean enabled,
        @Nullable String url,
        @Nullable Protocol protocol,
        @Nullable String apiKey,
        @DefaultValue Map<String, String> headers,
        @DefaultValue("30s") Duration timeout,
        @DefaultValue("10s") Duration connectTimeout,
        @Nullable Integer maxConnections,
        @DefaultValue RetryProperties retries,
        @DefaultValue TlsProperties tls) {

    /**
     * The retries of a client.
     *
     * @param maxAttempts The attempts together, the first one included; 1 for no retries.
     * @param initialDelay The delay before the second attempt, doubled with each further one.
     * @param maxDelay The longest delay.
     */
    public record RetryProperties(
            @DefaultValue("3") int maxAttempts,
            @DefaultValue("100ms") Duration initialDelay,
            @DefaultValue("2s") Duration maxDelay) {}

    /**
     * The TLS of a client. Without any of these the authorities of the JVM are trusted.
     *
     * @param bundle An SSL bundle of spring.ssl.bundle, instead of files.
     * @param certificateAuthorities A PEM file with the certificates to trust.
     * @param certificate A PEM file with the certificate of the client.
     * @param privateKey A PEM file with the key of the certificate, in PKCS#8.
     */
    public record TlsProperties(
            @Nullable String bundle,
            @Nullable String certificateAuthorities,
            @Nullable String certificate,
            @Nullable String privateKey) {}

    /** Without the key, which does not belong into logs. */
    @Override
    public String toString() {
        return "NereidClientProperties[url=" + url + ", protocol=" + protocol + ", timeout=" + timeout + ", retries="
                + retries + ", tls=" + tls + "]";
    }
}
