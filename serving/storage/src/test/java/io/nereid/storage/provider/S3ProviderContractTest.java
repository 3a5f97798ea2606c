// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.provider;

import io.nereid.base.Clock;
import io.nereid.storage.Given;
import io.nereid.storage.credentials.TokenCache;
import io.nereid.storage.http.HttpClients;
import io.nereid.storage.request.S3StoreContract;
import io.nereid.storage.spi.StorageProvider;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** The built-in provider of S3. */
class S3ProviderContractTest extends S3StoreContract {
    @TempDir
    Path directory;

    private HttpClients http;

    @BeforeEach
    void open() {
        http = new HttpClients(Given.options(directory), Clock.system());
    }

    @AfterEach
    void close() {
        http.close();
    }

    @Override
    protected StorageProvider provider() {
        return new StorageProviders(http, new TokenCache(Clock.system()), Map.of()).of("s3://bucket/x");
    }
}
