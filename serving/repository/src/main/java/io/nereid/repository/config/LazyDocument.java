// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.config;

import io.nereid.spi.config.ModelConfig;
import java.lang.ref.SoftReference;
import java.util.AbstractMap;
import java.util.Collections;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The document of a configuration, made when it is read and given back under memory pressure: its nested maps take
 * several kilobytes, and the documents of most models are never read. Immutable.
 */
final class LazyDocument extends AbstractMap<String, Object> {
    private final ModelConfig config;
    private volatile @Nullable SoftReference<Map<String, Object>> made;

    LazyDocument(ModelConfig config) {
        this.config = config;
    }

    private Map<String, Object> document() {
        SoftReference<Map<String, Object>> reference = made;
        Map<String, Object> document = reference == null ? null : reference.get();
        if (document == null) {
            document = Collections.unmodifiableMap(ModelConfigDocument.of(config));
            made = new SoftReference<>(document);
        }
        return document;
    }

    @Override
    public Set<Entry<String, Object>> entrySet() {
        return document().entrySet();
    }

    @Override
    public @Nullable Object get(@Nullable Object key) {
        return document().get(key);
    }

    @Override
    public boolean containsKey(@Nullable Object key) {
        return document().containsKey(key);
    }
}
