// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.provider;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.credentials.TokenCache;
import io.nereid.storage.http.HttpClients;
import io.nereid.storage.request.StorageOptions;
import io.nereid.storage.request.StorageUris;
import io.nereid.storage.request.StorageUris.Kind;
import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.IdentitySettings;
import io.nereid.storage.spi.RetryPolicy;
import io.nereid.storage.spi.StorageContext;
import io.nereid.storage.spi.StorageProvider;
import io.nereid.storage.spi.StorageSettings;
import io.nereid.storage.spi.StorageUri;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The storage providers: those of plugins, and the built-in ones for all other URIs. Thread-safe: immutable, and the
 * built-in providers share clients and tokens.
 */
public final class StorageProviders {
    private static final IdentitySettings AWS = new IdentitySettings(
            Set.of(
                    "AWS_ACCESS_KEY_ID",
                    "AWS_SECRET_ACCESS_KEY",
                    "AWS_SESSION_TOKEN",
                    "AWS_ROLE_ARN",
                    "AWS_WEB_IDENTITY_TOKEN_FILE",
                    "AWS_PROFILE",
                    "AWS_SHARED_CREDENTIALS_FILE",
                    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
                    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
                    "awsAnonymousCredential"),
            Set.of(
                    "AWS_ENDPOINT_URL",
                    "AWS_ENDPOINT_URL_S3",
                    "AWS_ENDPOINT_URL_STS",
                    "S3_ENDPOINT",
                    "S3_VERIFY_SSL",
                    "AWS_CA_BUNDLE"));
    private static final IdentitySettings GOOGLE = new IdentitySettings(
            Set.of("GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG"), Set.of("STORAGE_EMULATOR_HOST"));
    private static final IdentitySettings AZURE = new IdentitySettings(
            Set.of(
                    "AZ_CLIENT_ID",
                    "AZ_CLIENT_SECRET",
                    "AZ_TENANT_ID",
                    "AZURE_CLIENT_ID",
                    "AZURE_CLIENT_SECRET",
                    "AZURE_TENANT_ID",
                    "AZURE_FEDERATED_TOKEN_FILE",
                    "AZURE_STORAGE_ACCESS_KEY",
                    "AZURE_ACCESS_TOKEN",
                    "AZURE_STORAGE_SAS_TOKEN"),
            Set.of("AZURE_STORAGE_BLOB_ENDPOINT", "AZURE_STORAGE_FILE_ENDPOINT", "AZURE_AUTHORITY_HOST"));
    private static final IdentitySettings HUGGING_FACE =
            new IdentitySettings(Set.of("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH"), Set.of("HF_ENDPOINT"));
    private static final IdentitySettings HADOOP = new IdentitySettings(
            Set.of("HADOOP_USER_NAME", "USER_PROXY", "HEADERS", "TLS_CERT", "TLS_KEY"),
            Set.of("HDFS_NAMENODE", "TLS_CA", "TLS_SKIP_VERIFY"));
    private static final IdentitySettings DOCKER =
            new IdentitySettings(Set.of(".dockerconfigjson", "DOCKER_CONFIG"), Set.of());

    /** The identity settings of the built-in providers. */
    public static final List<IdentitySettings> IDENTITIES = List.of(AWS, GOOGLE, AZURE, HUGGING_FACE, HADOOP, DOCKER);

    private final StorageOptions options;
    private final Map<String, StorageProvider> plugins;
    private final List<StorageProvider> builtIn;
    private final List<IdentitySettings> identities = new ArrayList<>(IDENTITIES);

    /**
     * Creates the registry.
     *
     * @param plugins providers of plugins by scheme; each replaces the built-in one
     */
    public StorageProviders(HttpClients http, TokenCache tokens, Map<String, StorageProvider> plugins) {
        this.options = http.options;
        this.plugins = Map.copyOf(plugins);
        this.builtIn = List.of(
                new BuiltInProvider(
                        http,
                        Kind.S3,
                        Set.of("s3"),
                        AWS,
                        (uri, settings, session) -> new S3Source(uri, settings, session, tokens),
                        (uri, settings, session) -> new S3Source(uri, settings, session, tokens)),
                new BuiltInProvider(
                        http,
                        Kind.GCS,
                        Set.of("gs"),
                        GOOGLE,
                        (uri, settings, session) -> new GcsSource(uri, settings, session, tokens, GcsSource.READS),
                        (uri, settings, session) -> new GcsSource(uri, settings, session, tokens, GcsSource.WRITES)),
                new BuiltInProvider(
                        http,
                        Kind.AZURE,
                        Set.of("https", "http"),
                        AZURE,
                        (uri, settings, session) -> new AzureBlobSource(uri, settings, session, tokens),
                        (uri, settings, session) -> new AzureBlobSource(uri, settings, session, tokens)),
                new BuiltInProvider(
                        http,
                        Kind.AZURE_FILES,
                        Set.of("https", "http"),
                        AZURE,
                        (uri, settings, session) -> new AzureFileSource(uri, settings, session, tokens),
                        null),
                new BuiltInProvider(http, Kind.HDFS, Set.of("hdfs", "webhdfs"), HADOOP, WebHdfsSource::new, null),
                new BuiltInProvider(http, Kind.HUGGING_FACE, Set.of("hf"), HUGGING_FACE, HuggingFaceSource::new, null),
                new BuiltInProvider(
                        http,
                        Kind.OCI,
                        Set.of("oci", "oci+fetch", "oci+native", "oci+modelcar"),
                        DOCKER,
                        (uri, settings, session) -> new OciSource(uri, settings, session, tokens),
                        null),
                new BuiltInProvider(
                        http, Kind.HTTP, Set.of("https", "http"), IdentitySettings.NONE, HttpSource::new, null));
        plugins.values().forEach(provider -> identities.add(provider.identitySettings()));
    }

    /**
     * Providers by scheme.
     *
     * @throws ServingException FAILED_PRECONDITION when two have a scheme in common
     */
    public static Map<String, StorageProvider> byScheme(List<StorageProvider> plugins) {
        Map<String, StorageProvider> found = new HashMap<>();
        for (StorageProvider plugin : plugins) {
            for (String scheme : plugin.schemes()) {
                StorageProvider other = found.put(scheme, plugin);
                if (other != null) {
                    throw ServingException.of(
                            ErrorCode.FAILED_PRECONDITION,
                            "two storage plugins are for " + scheme + "://: '" + other.name() + "' and '"
                                    + plugin.name() + "'",
                            "remove one of them with nereid plugins remove");
                }
            }
        }
        return found;
    }

    /** Whether the URI is for a plugin. */
    public boolean isPlugin(String uri) {
        return plugin(uri) != null;
    }

    private @Nullable StorageProvider plugin(String uri) {
        StorageProvider plugin = plugins.get(StorageUri.scheme(uri));
        return plugin != null && plugin.accepts(uri) ? plugin : null;
    }

    /**
     * The provider of a URI.
     *
     * @throws ServingException INVALID_ARGUMENT for a URI that is invalid, not supported or not of a remote store
     */
    public StorageProvider of(String uri) {
        StorageProvider plugin = plugin(uri);
        if (plugin != null) {
            return plugin;
        }
        for (StorageProvider provider : builtIn) {
            if (provider.accepts(uri)) {
                return provider;
            }
        }
        throw StorageUris.invalid(uri, "it is not a remote store");
    }

    /** Combines the settings of a request and of the server's environment. */
    public StorageSettings settings(Map<String, String> request) {
        return StorageSettings.of(request, options.environment(), identities);
    }

    /** What a provider is given to open a URI. */
    public StorageContext context(
            StorageProvider provider, String uri, StorageSettings settings, CancellationToken cancel) {
        RetryPolicy server = new RetryPolicy(options.connectTimeout(), options.readTimeout(), options.attempts());
        return new StorageContext(
                uri,
                settings,
                provider.retries(settings, server),
                cancel,
                options.access().connections(uri)::checkHost);
    }
}
