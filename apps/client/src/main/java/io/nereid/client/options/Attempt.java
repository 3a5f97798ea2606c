// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.options;

import java.util.Collections;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * One attempt of a call, as interceptors see it. Used by one thread after the other, with a happens-before edge between them.
 */
public final class Attempt {
    private final String operation;
    private final String model;
    private final int number;
    private final Map<String, String> headers = new TreeMap<>();
    private final Map<Object, Object> attributes;

    /** Makes the attempt {@code number}, which shares the attributes of the attempts before. */
    public Attempt(String operation, String model, int number, Map<String, String> headers, @Nullable Attempt before) {
        this.operation = operation;
        this.model = model;
        this.number = number;
        this.attributes = before == null ? new HashMap<>() : before.attributes;
        headers.forEach(this::header);
    }

    /** The operation: {@code infer}, {@code stream}, {@code metadata}, {@code load}, … */
    public String operation() {
        return operation;
    }

    /** The model; empty for operations of the server. */
    public String model() {
        return model;
    }

    /** The number of the attempt, from 1. */
    public int number() {
        return number;
    }

    /** Sets a header. Its name is in lower case then, as HTTP/2 has it. */
    public void header(String name, String value) {
        headers.put(name.toLowerCase(Locale.ROOT), value);
    }

    /** The headers by name; cannot be changed. */
    public Map<String, String> headers() {
        return Collections.unmodifiableMap(headers);
    }

    /** Keeps a value for {@link RequestInterceptor#after} and for later attempts of the call, such as a span. */
    public void attribute(Object key, Object value) {
        attributes.put(key, value);
    }

    /** A value that was kept; null if none was. */
    public @Nullable Object attribute(Object key) {
        return attributes.get(key);
    }
}
