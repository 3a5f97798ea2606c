// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.http;

import io.nereid.base.ServingException;
import io.nereid.storage.spi.StorageSettings;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.SecureRandom;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509ExtendedTrustManager;
import org.jspecify.annotations.Nullable;

/**
 * TLS settings of a store. Immutable.
 *
 * @param authorities trusted PEM certificates, or null for the JVM's default trust store
 * @param verify whether the store's certificate is verified
 * @param certificate PEM certificate chain of the client, or null
 * @param key PEM key (PKCS#8) of the client, or null
 */
public record TlsSettings(
        @Nullable String authorities,
        boolean verify,
        @Nullable String certificate,
        @Nullable String key) {
    public static final TlsSettings MACHINE = new TlsSettings(null, true, null, null);

    private static final String PEM = "-----BEGIN";

    /** From the settings of S3. */
    public static TlsSettings ofS3(StorageSettings settings) {
        boolean verify = settings.flag("S3_VERIFY_SSL", true);
        return new TlsSettings(verify ? bundle(settings) : null, verify, null, null);
    }

    /** For all stores except S3 and HDFS: the CA bundle of the cluster, if it is mounted. */
    public static TlsSettings ofCluster(StorageSettings settings) {
        String mount = settings.get("CA_BUNDLE_VOLUME_MOUNT_POINT");
        if (settings.get("CA_BUNDLE_CONFIGMAP_NAME") == null || mount == null) {
            return MACHINE;
        }
        StorageSettings file = StorageSettings.of(
                java.util.Map.of("CA_BUNDLE", mount + "/cabundle.crt"), java.util.Map.of(), List.of());
        return new TlsSettings(file.text("CA_BUNDLE", PEM), true, null, null);
    }

    private static @Nullable String bundle(StorageSettings settings) {
        String own = settings.text("AWS_CA_BUNDLE", PEM);
        String map = settings.get("AWS_CA_BUNDLE_CONFIGMAP");
        if (own == null && map != null) {
            throw ServingException.invalidArgument(
                    "the CA bundle of S3 is in the ConfigMap '" + map + "', which is not mounted here",
                    "give its text, or the path of a file with it, as AWS_CA_BUNDLE (annotation"
                            + " serving.kserve.io/s3-cabundle)");
        }
        return own != null ? own : ofCluster(settings).authorities();
    }

    /** From the settings of HDFS. */
    public static TlsSettings ofHdfs(StorageSettings settings) {
        return new TlsSettings(
                settings.text("TLS_CA", PEM),
                !settings.flag("TLS_SKIP_VERIFY", false),
                settings.text("TLS_CERT", PEM),
                settings.text("TLS_KEY", PEM));
    }

    /** The SSL context, or null for the default one. */
    @Nullable SSLContext context() {
        if (equals(MACHINE)) {
            return null;
        }
        try {
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(keys(), trust(), new SecureRandom());
            return context;
        } catch (GeneralSecurityException | IOException | IllegalArgumentException e) {
            throw ServingException.invalidArgument(
                    "the certificates of the storage settings cannot be used: "
                            + e.getClass().getSimpleName(),
                    "give certificates and keys as PEM, keys as PKCS#8 without a passphrase");
        }
    }

    private KeyManager @Nullable [] keys() throws GeneralSecurityException, IOException {
        if (certificate == null || key == null) {
            return null;
        }
        String body = key.replaceAll("-----[A-Z ]+-----", "").replaceAll("\\s", "");
        PKCS8EncodedKeySpec spec = new PKCS8EncodedKeySpec(Base64.getDecoder().decode(body));
        PrivateKey own = null;
        for (String algorithm : List.of("RSA", "EC", "Ed25519")) {
            try {
                own = KeyFactory.getInstance(algorithm).generatePrivate(spec);
                break;
            } catch (GeneralSecurityException e) {
                own = null;
            }
        }
        if (own == null) {
            throw new GeneralSecurityException("unknown key");
        }
        KeyStore store = empty();
        char[] none = new char[0];
        store.setKeyEntry("own", own, none, read(certificate).toArray(new Certificate[0]));
        KeyManagerFactory factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        factory.init(store, none);
        return factory.getKeyManagers();
    }

    private TrustManager @Nullable [] trust() throws GeneralSecurityException, IOException {
        if (!verify) {
            return new TrustManager[] {new TrustsAll()};
        }
        if (authorities == null) {
            return null;
        }
        KeyStore store = empty();
        int next = 0;
        for (Certificate authority : read(authorities)) {
            store.setCertificateEntry("authority-" + next++, authority);
        }
        if (next == 0) {
            throw new GeneralSecurityException("no certificates");
        }
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(store);
        return factory.getTrustManagers();
    }

    private static Collection<? extends Certificate> read(String pem) throws GeneralSecurityException {
        return CertificateFactory.getInstance("X.509")
                .generateCertificates(new ByteArrayInputStream(pem.getBytes(StandardCharsets.US_ASCII)));
    }

    private static KeyStore empty() throws GeneralSecurityException, IOException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        return store;
    }

    /** Does not show certificates or keys. */
    @Override
    public String toString() {
        return "TlsSettings[" + (equals(MACHINE) ? "machine" : "own") + "]";
    }

    /**
     * Trusts every certificate, for settings that disable verification. An extended trust manager, so that the JDK does
     * not verify host names either. Stateless.
     */
    private static final class TrustsAll extends X509ExtendedTrustManager {
        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket) {}

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket) {}

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine) {}

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine) {}

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type) {}

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type) {}

        @Override
        public X509Certificate[] getAcceptedIssuers() {
            return new X509Certificate[0];
        }
    }
}
