// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.examples.storage;

import io.nereid.storage.spi.IdentitySettings;
import io.nereid.storage.spi.ObjectSource;
import io.nereid.storage.spi.StorageContext;
import io.nereid.storage.spi.StorageProvider;
import java.util.Set;

/**
 * {@code sums+https://host/directory}: the files of a web server's directory that its {@code SHA256SUMS} lists, in the
 * format of {@code sha256sum}. The setting {@code SUMS_TOKEN} is sent as a bearer token. Thread-safe.
 */
public final class ChecksumListProvider implements StorageProvider {
    /** For the loader of plugins. */
    public ChecksumListProvider() {}

    @Override
    public String name() {
        return "sums";
    }

    @Override
    public Set<String> schemes() {
        return Set.of("sums+https", "sums+http");
    }

    @Override
    public IdentitySettings identitySettings() {
        return new IdentitySettings(Set.of("SUMS_TOKEN"), Set.of());
    }

    @Override
    public ObjectSource open(StorageContext context) {
        return new ChecksumListSource(context);
    }
}
