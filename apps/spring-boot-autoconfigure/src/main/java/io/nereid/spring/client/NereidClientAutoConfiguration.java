// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.client;

import io.nereid.client.ClientBuilder;
import io.nereid.client.NereidClient;
import io.nereid.client.options.ClientTlsOptions;
import io.nereid.client.options.Protocol;
import io.nereid.client.options.RequestInterceptor;
import io.nereid.client.options.RequestRetryPolicy;
import io.nereid.spring.client.NereidClientProperties.RetryProperties;
import io.nereid.spring.client.NereidClientProperties.TlsProperties;
import io.opentelemetry.api.OpenTelemetry;
import java.io.FileNotFoundException;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.ssl.SslBundles;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.util.ResourceUtils;

/**
 * Makes a client of the server of {@code nereid.client.url}, as a bean {@code nereidClient} that is closed with the application.
 * Beans of type {@link RequestInterceptor} see its calls, in their order.
 *
 * <p>It does nothing without a URL, or when the application has a {@link NereidClient} of its own.
 */
@AutoConfiguration(
        // Of Spring Boot 3 and of Spring Boot 4.
        afterName = {
            "org.springframework.boot.actuate.autoconfigure.opentelemetry.OpenTelemetryAutoConfiguration",
            "org.springframework.boot.opentelemetry.autoconfigure.OpenTelemetrySdkAutoConfiguration",
            "org.springframework.boot.autoconfigure.ssl.SslAutoConfiguration"
        })
@ConditionalOnClass(NereidClient.class)
@ConditionalOnProperty(prefix = "nereid.client", name = "enabled", matchIfMissing = true)
@ConditionalOnProperty(prefix = "nereid.client", name = "url")
@ConditionalOnMissingBean(NereidClient.class)
@EnableConfigurationProperties(NereidClientProperties.class)
public class NereidClientAutoConfiguration {
    private static final String PREFIX = "nereid.client.";

    /** Makes the client; connections are made with the first call. */
    @Bean
    @ConditionalOnMissingBean
    public NereidClient nereidClient(
            NereidClientProperties properties,
            ObjectProvider<SslBundles> bundles,
            ObjectProvider<RequestInterceptor> interceptors,
            ObjectProvider<NereidClientCustomizer> customizers) {
        String url = properties.url() == null ? "" : properties.url();
        ClientBuilder builder = checked("url", url, () -> NereidClient.builder(url));
        Protocol protocol = properties.protocol();
        if (protocol != null) {
            checked("protocol", protocol, () -> builder.protocol(protocol));
        }
        if (properties.apiKey() != null) {
            builder.apiKey(properties.apiKey());
        }
        properties.headers().forEach(builder::header);
        checked("timeout", properties.timeout(), () -> builder.timeout(properties.timeout()));
        checked(
                "connect-timeout",
                properties.connectTimeout(),
                () -> builder.connectTimeout(properties.connectTimeout()));
        Integer connections = properties.maxConnections();
        if (connections != null) {
            checked("max-connections", connections, () -> builder.maxConnections(connections));
        }
        RetryProperties retries = properties.retries();
        builder.retries(checked(
                "retries",
                retries,
                () -> RequestRetryPolicy.ofAttempts(retries.maxAttempts())
                        .withDelays(retries.initialDelay(), retries.maxDelay())));
        ClientTlsOptions tls = tls(properties.tls(), bundles);
        if (tls != null) {
            checked("tls", url, () -> builder.tls(tls));
            // Reads the files, and fails with the one that is wrong.
            checked("tls", properties.tls(), tls::sslContext);
        }
        interceptors.orderedStream().forEach(builder::interceptor);
        customizers.orderedStream().forEach(customizer -> customizer.customize(builder));
        return checked("url", url, builder::build);
    }

    private static @Nullable ClientTlsOptions tls(TlsProperties tls, ObjectProvider<SslBundles> bundles) {
        boolean files = tls.certificateAuthorities() != null || tls.certificate() != null || tls.privateKey() != null;
        if (tls.bundle() != null) {
            if (files) {
                throw wrong(
                        "tls.bundle", tls.bundle(), "There are files beside it; give either a bundle or files", null);
            }
            return ClientTlsOptions.of(
                    bundles.getObject().getBundle(tls.bundle()).createSslContext());
        }
        if (!files) {
            return null;
        }
        String authorities = tls.certificateAuthorities();
        ClientTlsOptions options = authorities == null
                ? ClientTlsOptions.standard()
                : ClientTlsOptions.trusting(file("certificate-authorities", authorities));
        String certificate = tls.certificate();
        String key = tls.privateKey();
        if (certificate == null && key == null) {
            return options;
        }
        if (certificate == null) {
            throw wrong("tls.certificate", null, "There is a private key without its certificate", null);
        }
        if (key == null) {
            throw wrong("tls.private-key", null, "There is a certificate without its private key", null);
        }
        return options.withClientCertificate(file("certificate", certificate), file("private-key", key));
    }

    /** A path of the file system, or what is in it of a {@code file:} or {@code classpath:} location. */
    private static Path file(String name, String text) {
        try {
            return ResourceUtils.isUrl(text) ? ResourceUtils.getFile(text).toPath() : Path.of(text);
        } catch (FileNotFoundException | InvalidPathException e) {
            throw wrong("tls." + name, text, "It is not a path of the file system: " + e.getMessage(), e);
        }
    }

    private interface Step<T> {
        T run();
    }

    private static <T> T checked(String name, Object value, Step<T> step) {
        try {
            return step.run();
        } catch (IllegalArgumentException e) {
            throw wrong(name, value, String.valueOf(e.getMessage()), e);
        }
    }

    private static InvalidConfigurationPropertyValueException wrong(
            String name, @Nullable Object value, String reason, @Nullable Throwable cause) {
        InvalidConfigurationPropertyValueException e =
                new InvalidConfigurationPropertyValueException(PREFIX + name, value, reason);
        if (cause != null) {
            e.initCause(cause);
        }
        return e;
    }

    /** The context of traces in the headers of requests, where the application has OpenTelemetry. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(OpenTelemetry.class)
    @ConditionalOnBean(OpenTelemetry.class)
    static class Traces {
        @Bean
        @ConditionalOnMissingBean(name = "nereidTracePropagation")
        RequestInterceptor nereidTracePropagation(OpenTelemetry openTelemetry) {
            return new TracePropagation(openTelemetry);
        }
    }
}
