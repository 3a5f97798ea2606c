// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.s3;

import io.nereid.storage.spi.IdentitySettings;
import io.nereid.storage.spi.ObjectSource;
import io.nereid.storage.spi.RetryPolicy;
import io.nereid.storage.spi.StorageContext;
import io.nereid.storage.spi.StorageProvider;
import io.nereid.storage.spi.StorageSettings;
import io.nereid.storage.spi.UploadTarget;
import java.time.Duration;
import java.util.Set;

/**
 * {@code s3://bucket/path} and {@code s3://ARN/path} on the AWS SDK. A plugin: when it is installed it replaces the
 * server's own client of S3. Thread-safe: each fetch has a client of its own, and fetches share credentials.
 */
public final class S3StorageProvider implements StorageProvider {
    private static final IdentitySettings IDENTITY = new IdentitySettings(
            Set.of(
                    "AWS_ACCESS_KEY_ID",
                    "AWS_SECRET_ACCESS_KEY",
                    "AWS_SESSION_TOKEN",
                    "AWS_ROLE_ARN",
                    "AWS_WEB_IDENTITY_TOKEN_FILE",
                    "AWS_PROFILE",
                    "AWS_SHARED_CREDENTIALS_FILE",
                    "AWS_CONFIG_FILE",
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

    private final S3Credentials credentials = new S3Credentials();

    /** For the loader of plugins. */
    public S3StorageProvider() {}

    @Override
    public String name() {
        return "s3";
    }

    @Override
    public Set<String> schemes() {
        return Set.of("s3");
    }

    @Override
    public IdentitySettings identitySettings() {
        return IDENTITY;
    }

    @Override
    public RetryPolicy retries(StorageSettings settings, RetryPolicy server) {
        return new RetryPolicy(
                seconds(settings, "S3_CONNECT_TIMEOUT", server.connect()),
                seconds(settings, "S3_READ_TIMEOUT", server.read()),
                settings.count("S3_MAX_ATTEMPTS", settings.count("AWS_MAX_ATTEMPTS", server.attempts())));
    }

    private static Duration seconds(StorageSettings settings, String name, Duration otherwise) {
        return settings.get(name) == null ? otherwise : Duration.ofSeconds(settings.count(name, 1));
    }

    @Override
    public ObjectSource open(StorageContext context) {
        S3Location location = S3Location.parse(context.uri());
        return new S3ObjectSource(
                context,
                location,
                new S3Session(context, credentials, context.retries().attempts()));
    }

    /** Each write is sent once; the server decides about retries. */
    @Override
    public UploadTarget upload(StorageContext context) {
        S3Location location = S3Location.parse(context.uri());
        return new S3UploadTarget(context, location, new S3Session(context, credentials, 1));
    }
}
