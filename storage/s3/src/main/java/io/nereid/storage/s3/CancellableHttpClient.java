// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.s3;

import io.nereid.base.ServingException;
import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.HostCheck;
import io.nereid.storage.spi.StorageContext;
import io.nereid.storage.spi.StorageSettings;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.List;
import java.util.Map;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.http.ExecutableHttpRequest;
import software.amazon.awssdk.http.HttpExecuteRequest;
import software.amazon.awssdk.http.HttpExecuteResponse;
import software.amazon.awssdk.http.SdkHttpClient;
import software.amazon.awssdk.http.SdkHttpConfigurationOption;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.utils.AttributeMap;

/**
 * The JDK's HTTP client behind the SDK's interface, with timeouts and TLS of a fetch. A cancellation ends the requests of
 * a thread that is {@link #bind bound} to its token. Thread-safe.
 */
final class CancellableHttpClient implements SdkHttpClient {
    private static final String PEM = "-----BEGIN";

    private static final ThreadLocal<@Nullable CancellationToken> CURRENT = new ThreadLocal<>();

    private final SdkHttpClient client;
    private final HostCheck hosts;

    private CancellableHttpClient(SdkHttpClient client, HostCheck hosts) {
        this.client = client;
        this.hosts = hosts;
    }

    static CancellableHttpClient of(StorageContext context) {
        StorageSettings settings = context.settings();
        boolean verify = settings.flag("S3_VERIFY_SSL", true);
        UrlConnectionHttpClient.Builder builder = UrlConnectionHttpClient.builder()
                .connectionTimeout(context.retries().connect())
                .socketTimeout(context.retries().read());
        TrustManager[] trusted = verify ? trusted(settings) : null;
        if (trusted != null) {
            builder.tlsTrustManagersProvider(() -> trusted);
        }
        return new CancellableHttpClient(
                builder.buildWithDefaults(AttributeMap.builder()
                        .put(SdkHttpConfigurationOption.TRUST_ALL_CERTIFICATES, !verify)
                        .build()),
                context.hosts());
    }

    /** The trust managers of the settings' certificates, or null for those of the JVM. */
    private static TrustManager @Nullable [] trusted(StorageSettings settings) {
        String pem = settings.text("AWS_CA_BUNDLE", PEM);
        String map = settings.get("AWS_CA_BUNDLE_CONFIGMAP");
        if (pem == null && map != null) {
            throw ServingException.invalidArgument(
                    "the CA bundle of S3 is in the ConfigMap '" + map + "', which is not mounted here",
                    "give its text, or the path of a file with it, as AWS_CA_BUNDLE (annotation"
                            + " serving.kserve.io/s3-cabundle)");
        }
        String mount = settings.get("CA_BUNDLE_VOLUME_MOUNT_POINT");
        if (pem == null && mount != null && settings.get("CA_BUNDLE_CONFIGMAP_NAME") != null) {
            pem = StorageSettings.of(Map.of("CA_BUNDLE", mount + "/cabundle.crt"), Map.of(), List.of())
                    .text("CA_BUNDLE", PEM);
        }
        if (pem == null) {
            return null;
        }
        try {
            KeyStore store = KeyStore.getInstance("PKCS12");
            store.load(null, null);
            int next = 0;
            for (Certificate authority : CertificateFactory.getInstance("X.509")
                    .generateCertificates(new ByteArrayInputStream(pem.getBytes(StandardCharsets.US_ASCII)))) {
                store.setCertificateEntry("authority-" + next++, authority);
            }
            TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            factory.init(store);
            return factory.getTrustManagers();
        } catch (GeneralSecurityException | IOException e) {
            throw ServingException.invalidArgument(
                    "the certificates of the storage settings cannot be used: "
                            + e.getClass().getSimpleName(),
                    "give certificates as PEM");
        }
    }

    /** Lets a token end the requests of this thread, until {@link #unbind}. */
    static void bind(CancellationToken cancel) {
        CURRENT.set(cancel);
    }

    static void unbind() {
        CURRENT.remove();
    }

    @Override
    public ExecutableHttpRequest prepareRequest(HttpExecuteRequest request) {
        hosts.check(request.httpRequest().getUri());
        ExecutableHttpRequest prepared = client.prepareRequest(request);
        CancellationToken cancel = CURRENT.get();
        return cancel == null ? prepared : new Request(prepared, cancel);
    }

    /** A request that a token ends until its response begins. */
    private record Request(ExecutableHttpRequest request, CancellationToken cancel) implements ExecutableHttpRequest {
        @Override
        public HttpExecuteResponse call() throws IOException {
            cancel.check();
            Runnable ending = request::abort;
            cancel.add(ending);
            try {
                return request.call();
            } finally {
                cancel.remove(ending);
            }
        }

        @Override
        public void abort() {
            request.abort();
        }
    }

    @Override
    public String clientName() {
        return client.clientName();
    }

    @Override
    public void close() {
        client.close();
    }
}
