// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.s3;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.spi.StorageSettings;
import java.net.URI;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentialsProvider;
import software.amazon.awssdk.auth.credentials.AwsSessionCredentials;
import software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider;
import software.amazon.awssdk.auth.credentials.ProfileCredentialsProvider;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.exception.SdkClientException;
import software.amazon.awssdk.http.SdkHttpClient;
import software.amazon.awssdk.profiles.ProfileFile;
import software.amazon.awssdk.profiles.ProfileFileLocation;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.sts.StsClient;
import software.amazon.awssdk.services.sts.auth.StsWebIdentityTokenFileCredentialsProvider;

/**
 * Selects the credentials of a fetch: anonymous, keys, a role with a web identity, a profile, or what the SDK's default
 * chain finds on this machine (environment, web identity, profiles with roles or single sign-on, container, instance
 * metadata). Thread-safe. Providers with temporary credentials are kept, so that fetches share them.
 */
final class S3Credentials {
    private static final Logger LOG = LoggerFactory.getLogger(S3Credentials.class);
    private static final int MOST_KEPT = 64;

    private final Map<String, AwsCredentialsProvider> kept = new ConcurrentHashMap<>();

    /** @param http the client for the token service, created when it is needed */
    AwsCredentialsProvider of(StorageSettings settings, Region region, Supplier<SdkHttpClient> http) {
        if (settings.flag("awsAnonymousCredential", false)) {
            return AnonymousCredentialsProvider.create();
        }
        String id = settings.get("AWS_ACCESS_KEY_ID");
        String secret = settings.get("AWS_SECRET_ACCESS_KEY");
        if (id != null && secret != null) {
            String token = settings.get("AWS_SESSION_TOKEN");
            return StaticCredentialsProvider.create(
                    token == null
                            ? AwsBasicCredentials.create(id, secret)
                            : AwsSessionCredentials.create(id, secret, token));
        }
        if (id != null || secret != null) {
            throw ServingException.invalidArgument(
                    "storage setting " + (id == null ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY") + " is missing",
                    "give both keys or none");
        }
        String role = settings.get("AWS_ROLE_ARN");
        if (role != null) {
            return assumed(settings, role, region, http);
        }
        boolean ambient = settings.ambient("AWS_ACCESS_KEY_ID");
        String profile = settings.get("AWS_PROFILE");
        String file = settings.get("AWS_SHARED_CREDENTIALS_FILE");
        String config = settings.get("AWS_CONFIG_FILE");
        if (!ambient && profile == null && file == null && config == null) {
            // The request names an endpoint and no identity: it must not get the server's.
            return AnonymousCredentialsProvider.create();
        }
        return keep("profile " + ambient + "\n" + profile + "\n" + file + "\n" + config, () -> {
            Supplier<ProfileFile> files = profiles(file, config, ambient);
            return ambient
                    ? new Ambient(DefaultCredentialsProvider.builder()
                            .profileFile(files)
                            .profileName(profile)
                            .build())
                    : ProfileCredentialsProvider.builder()
                            .profileFile(files)
                            .profileName(profile)
                            .build();
        });
    }

    private AwsCredentialsProvider assumed(
            StorageSettings settings, String role, Region region, Supplier<SdkHttpClient> http) {
        String file = settings.get("AWS_WEB_IDENTITY_TOKEN_FILE");
        if (file == null) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "the role " + role + " needs AWS_WEB_IDENTITY_TOKEN_FILE, which is not set",
                    "give keys in a secret, or a web identity token");
        }
        String endpoint = settings.get("AWS_ENDPOINT_URL_STS");
        String name = settings.get("AWS_ROLE_SESSION_NAME", "nereid");
        return keep("role " + role + "\n" + file + "\n" + region + "\n" + endpoint + "\n" + name, () -> {
            var sts = StsClient.builder()
                    .region(region)
                    .credentialsProvider(AnonymousCredentialsProvider.create())
                    .httpClient(http.get());
            if (endpoint != null) {
                sts.endpointOverride(URI.create(endpoint));
            }
            return StsWebIdentityTokenFileCredentialsProvider.builder()
                    .stsClient(sts.build())
                    .roleArn(role)
                    .roleSessionName(name)
                    .webIdentityTokenFile(Path.of(file))
                    .build();
        });
    }

    private AwsCredentialsProvider keep(String key, Supplier<AwsCredentialsProvider> create) {
        if (kept.size() >= MOST_KEPT) {
            kept.clear();
        }
        return kept.computeIfAbsent(key, k -> create.get());
    }

    /**
     * The profiles of the named files; null for those of the usual files.
     *
     * @param ambient whether the usual file takes the place of one that is not named
     */
    private static @Nullable Supplier<ProfileFile> profiles(
            @Nullable String credentials, @Nullable String config, boolean ambient) {
        if (credentials == null && config == null) {
            return null;
        }
        ProfileFile.Aggregator files = ProfileFile.aggregator();
        add(
                files,
                credentials,
                ProfileFile.Type.CREDENTIALS,
                ambient ? ProfileFileLocation.credentialsFileLocation() : Optional.empty());
        add(
                files,
                config,
                ProfileFile.Type.CONFIGURATION,
                ambient ? ProfileFileLocation.configurationFileLocation() : Optional.empty());
        ProfileFile all = files.build();
        return () -> all;
    }

    private static void add(
            ProfileFile.Aggregator files, @Nullable String named, ProfileFile.Type type, Optional<Path> usual) {
        Optional<Path> path = named == null ? usual : Optional.of(Path.of(named));
        path.ifPresent(
                p -> files.addFile(ProfileFile.builder().content(p).type(type).build()));
    }

    /** The default chain, and anonymous access where it finds nothing. Thread-safe. */
    private record Ambient(AwsCredentialsProvider chain) implements AwsCredentialsProvider {
        @Override
        public AwsCredentials resolveCredentials() {
            try {
                return chain.resolveCredentials();
            } catch (SdkClientException e) {
                LOG.debug("there are no credentials of AWS on this machine; access is anonymous", e);
                return AnonymousCredentialsProvider.create().resolveCredentials();
            }
        }
    }
}
