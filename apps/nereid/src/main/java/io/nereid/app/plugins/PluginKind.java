// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.plugins;

import io.nereid.backend.Backend;
import io.nereid.backend.CacheStoreProvider;
import io.nereid.device.DeviceDriverProvider;
import io.nereid.storage.spi.StorageProvider;
import org.jspecify.annotations.Nullable;

/** What a plugin can provide. */
enum PluginKind {
    /** An execution technology. */
    BACKEND("backend", Backend.class),
    /** Stores that models are downloaded from. */
    STORAGE("storage", StorageProvider.class),
    /** A store of cached responses. */
    CACHE("cache", CacheStoreProvider.class),
    /** A driver of GPUs. */
    DEVICE("device", DeviceDriverProvider.class),
    /** Libraries that a backend of the distribution loads in the place of its own. It provides nothing. */
    LIBRARIES("libraries", null);

    private final String text;
    private final @Nullable Class<?> service;

    PluginKind(String text, @Nullable Class<?> service) {
        this.text = text;
        this.service = service;
    }

    /** The interface that a plugin's providers of this kind implement, and their service files are named by; null for {@link #LIBRARIES}. */
    @Nullable Class<?> service() {
        return service;
    }

    @Override
    public String toString() {
        return text;
    }
}
