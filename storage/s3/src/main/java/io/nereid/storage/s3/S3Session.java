// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.s3;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.StorageContext;
import io.nereid.storage.spi.StorageFailures;
import io.nereid.storage.spi.StorageSettings;
import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.auth.credentials.AwsCredentialsProvider;
import software.amazon.awssdk.auth.credentials.CredentialUtils;
import software.amazon.awssdk.awscore.retry.AwsRetryStrategy;
import software.amazon.awssdk.core.checksums.RequestChecksumCalculation;
import software.amazon.awssdk.core.checksums.ResponseChecksumValidation;
import software.amazon.awssdk.core.exception.SdkException;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.S3ClientBuilder;
import software.amazon.awssdk.services.s3.model.S3Exception;

/**
 * The client of one fetch, made of its settings, and the calls to it: cancellation, and the exceptions of failures.
 * Thread-safe until {@link #close}.
 */
final class S3Session implements AutoCloseable {
    private final StorageContext context;
    private final StorageFailures failures;
    private final @Nullable URI endpoint;
    private final Region region;
    private final AwsCredentialsProvider credentials;
    private final boolean validating;
    private final CancellableHttpClient http;
    private final S3Client client;

    /** @param attempts how often a request is sent at most */
    S3Session(StorageContext context, S3Credentials known, int attempts) {
        this.context = context;
        this.failures = new StorageFailures(context.settings(), attempts);
        StorageSettings settings = context.settings();
        this.endpoint = endpoint(settings);
        this.region = Region.of(region(settings));
        this.http = CancellableHttpClient.of(context);
        boolean virtual = settings.flag("S3_USER_VIRTUAL_BUCKET", settings.flag("S3_USE_VIRTUAL_BUCKET", false));
        // Servers other than AWS need not know the checksums that the SDK sends by default.
        boolean checksums = endpoint == null;
        this.validating = checksums(settings, "AWS_RESPONSE_CHECKSUM_VALIDATION", checksums);
        S3ClientBuilder builder = S3Client.builder()
                .httpClient(http)
                .region(region)
                .requestChecksumCalculation(
                        checksums(settings, "AWS_REQUEST_CHECKSUM_CALCULATION", checksums)
                                ? RequestChecksumCalculation.WHEN_SUPPORTED
                                : RequestChecksumCalculation.WHEN_REQUIRED)
                .responseChecksumValidation(
                        validating
                                ? ResponseChecksumValidation.WHEN_SUPPORTED
                                : ResponseChecksumValidation.WHEN_REQUIRED)
                .forcePathStyle(endpoint != null && !virtual)
                .accelerate(settings.flag("S3_USE_ACCELERATE", false))
                .fipsEnabled(settings.flag("AWS_USE_FIPS_ENDPOINT", false))
                .dualstackEnabled(settings.flag("AWS_USE_DUALSTACK_ENDPOINT", false))
                .crossRegionAccessEnabled(endpoint == null)
                .serviceConfiguration(c -> c.useArnRegionEnabled(true)
                        .chunkedEncodingEnabled(false)
                        .expectContinueEnabled(false))
                .overrideConfiguration(c -> c.retryStrategy(AwsRetryStrategy.standardRetryStrategy().toBuilder()
                        .maxAttempts(attempts)
                        .build()));
        if (endpoint != null) {
            builder.endpointOverride(endpoint);
        }
        this.credentials = known.of(settings, region, () -> CancellableHttpClient.of(context));
        this.client = builder.credentialsProvider(credentials).build();
    }

    private static boolean checksums(StorageSettings settings, String name, boolean otherwise) {
        String value = settings.get(name);
        if (value == null) {
            return otherwise;
        }
        if (value.equalsIgnoreCase("when_supported") || value.equalsIgnoreCase("when_required")) {
            return value.equalsIgnoreCase("when_supported");
        }
        throw ServingException.invalidArgument(
                "storage setting " + name + " is '" + value + "'; expected when_supported or when_required");
    }

    private static String region(StorageSettings settings) {
        String region = settings.first("AWS_DEFAULT_REGION", "AWS_REGION");
        return region == null ? "us-east-1" : region;
    }

    private static @Nullable URI endpoint(StorageSettings settings) {
        String url = settings.first("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
        if (url == null) {
            String host = settings.get("S3_ENDPOINT");
            if (host == null) {
                return null;
            }
            url = host.contains("://") ? host : (settings.flag("S3_USE_HTTPS", true) ? "https://" : "http://") + host;
        }
        URI parsed;
        try {
            parsed = new URI(url.endsWith("/") ? url.substring(0, url.length() - 1) : url);
        } catch (URISyntaxException e) {
            throw badEndpoint();
        }
        if (parsed.getHost() == null || !("http".equals(parsed.getScheme()) || "https".equals(parsed.getScheme()))) {
            throw badEndpoint();
        }
        return parsed.getHost().equals("s3.amazonaws.com") ? null : parsed;
    }

    private static ServingException badEndpoint() {
        return ServingException.invalidArgument(
                "the endpoint of S3 is not an http or https URL", "set AWS_ENDPOINT_URL as in https://host:port");
    }

    /** Whether responses are asked for the object's checksum. */
    boolean validating() {
        return validating;
    }

    /** The store, for the identity of a listing. */
    String place() {
        return endpoint == null ? "aws " + region : endpoint.toString();
    }

    /** Sends a request; its failures are ServingExceptions. */
    <T> T call(String what, CancellationToken cancel, Function<S3Client, T> request) {
        try {
            return attempt(what, cancel, request);
        } catch (S3Exception e) {
            throw failed(what, e);
        }
    }

    /** As {@link #call}, but the store's answers that are not a success are S3Exceptions. */
    <T> T attempt(String what, CancellationToken cancel, Function<S3Client, T> request) {
        cancel.check();
        CancellableHttpClient.bind(cancel);
        try {
            return request.apply(client);
        } catch (S3Exception e) {
            throw e;
        } catch (RuntimeException e) {
            cancel.check();
            if (e instanceof SdkException sdk) {
                throw unavailable(what, sdk);
            }
            throw e;
        } finally {
            CancellableHttpClient.unbind();
        }
    }

    private ServingException unavailable(String what, SdkException e) {
        Throwable cause = e;
        while (cause.getCause() != null && cause.getCause() != cause) {
            cause = cause.getCause();
        }
        if (cause instanceof IOException io) {
            return failures.unreachable(what, io);
        }
        return ServingException.wrap(
                ErrorCode.FAILED_PRECONDITION,
                context.settings().redact(what + ": the request cannot be made: " + e.getMessage()),
                "check the settings and the credentials of S3",
                e);
    }

    /** The exception for an answer that is not a success. */
    ServingException failed(String what, S3Exception e) {
        String remedy = e.statusCode() == 403 && CredentialUtils.isAnonymous(credentials.resolveCredentials())
                ? "no credentials were given; give a secret with AWS keys"
                : null;
        return failures.ofStatus(what, e.statusCode(), code(e), remedy);
    }

    /** The error code of an answer, or an empty text. */
    static String code(S3Exception e) {
        String code = e.awsErrorDetails() == null ? null : e.awsErrorDetails().errorCode();
        return code == null || code.matches("\\d+") ? "" : code;
    }

    @Override
    public void close() {
        client.close();
        http.close();
    }
}
