// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.request;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.storage.Given;
import io.nereid.storage.Storage;
import io.nereid.storage.credentials.SigV4Signer;
import io.nereid.storage.credentials.TokenCache;
import io.nereid.storage.http.HttpClients;
import io.nereid.storage.provider.S3Source;
import io.nereid.storage.provider.StorageProviders;
import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.ObjectSource;
import io.nereid.storage.spi.StorageProvider;
import io.nereid.storage.spi.StorageSettings;
import java.net.URI;
import java.time.Instant;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The built-in client of S3. */
class S3Test extends S3StoreTests {
    @Override
    protected Storage open() {
        return Given.storage(directory);
    }

    @Test
    void theBucketIsInThePathOrInTheHostName() {
        Map<String, String> roots = Map.of(
                "", "https://bucket.s3.eu-west-1.amazonaws.com",
                "AWS_ENDPOINT_URL=http://store:9000/", "http://store:9000/bucket",
                "AWS_ENDPOINT_URL=https://s3.amazonaws.com", "https://bucket.s3.eu-west-1.amazonaws.com",
                "S3_ENDPOINT=store:9000", "https://store:9000/bucket",
                "S3_ENDPOINT=store,S3_USER_VIRTUAL_BUCKET=true", "https://bucket.store",
                "S3_ENDPOINT=store,S3_USE_HTTPS=0,S3_USER_VIRTUAL_BUCKET=True", "http://bucket.store",
                "AWS_USE_FIPS_ENDPOINT=true,AWS_USE_DUALSTACK_ENDPOINT=1",
                        "https://bucket.s3-fips.dualstack.eu-west-1.amazonaws.com",
                "S3_USE_ACCELERATE=true", "https://bucket.s3-accelerate.amazonaws.com");
        try (HttpClients http = new HttpClients(Given.options(directory), io.nereid.base.Clock.system())) {
            roots.forEach((given, root) -> {
                Map<String, String> values = new java.util.HashMap<>(Map.of("AWS_DEFAULT_REGION", "eu-west-1"));
                for (String setting : given.split(",")) {
                    if (!setting.isEmpty()) {
                        values.put(setting.split("=", 2)[0], setting.split("=", 2)[1]);
                    }
                }
                StorageProviders providers =
                        new StorageProviders(http, new TokenCache(io.nereid.base.Clock.system()), Map.of());
                StorageProvider provider = providers.of("s3://bucket/x");
                ObjectSource source = provider.open(providers.context(
                        provider, "s3://bucket/x", providers.settings(values), new CancellationToken()));
                assertThat(((S3Source) source).root()).as(given).isEqualTo(root);
            });
        }
    }

    @Test
    void theServersOwnKeysNeverGoToAnEndpointOfTheRequest() {
        StorageSettings settings = StorageSettings.of(
                Map.of("AWS_ENDPOINT_URL", "http://elsewhere"),
                Map.of(
                        "AWS_ACCESS_KEY_ID",
                        "own",
                        "AWS_SECRET_ACCESS_KEY",
                        "own-secret",
                        "AWS_DEFAULT_REGION",
                        "eu-west-1"),
                StorageProviders.IDENTITIES);
        assertThat(settings.get("AWS_ACCESS_KEY_ID")).isNull();
        assertThat(settings.get("AWS_DEFAULT_REGION")).isEqualTo("eu-west-1");
    }

    @Test
    void signaturesAreThoseOfThePublishedExample() {
        // "GET Object" of the documentation of AWS, Signature Version 4 for S3, which also signs the range.
        Map<String, String> signed = SigV4Signer.sign(
                new SigV4Signer.Key("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", null),
                "us-east-1",
                "s3",
                "GET",
                URI.create("https://examplebucket.s3.amazonaws.com/test.txt"),
                Map.of("Range", "bytes=0-9"),
                Instant.parse("2013-05-24T00:00:00Z"));
        assertThat(signed.get("Authorization"))
                .endsWith("Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    }
}
