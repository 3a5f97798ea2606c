// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.s3;

import io.nereid.storage.request.S3StoreContract;
import io.nereid.storage.spi.StorageProvider;

class S3StorageProviderContractTest extends S3StoreContract {
    private final StorageProvider provider = new S3StorageProvider();

    @Override
    protected StorageProvider provider() {
        return provider;
    }
}
