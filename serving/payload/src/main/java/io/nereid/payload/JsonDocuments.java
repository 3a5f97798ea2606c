// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.cfg.JsonNodeFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import org.jspecify.annotations.Nullable;

/**
 * Parses and writes JSON documents. The parser is strict and keeps every value: duplicate fields and trailing tokens
 * are errors, and numbers keep all digits, so that redaction finds every value and changes no other one. Thread-safe.
 */
final class JsonDocuments {
    static final JsonMapper MAPPER = JsonMapper.builder()
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
            .disable(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES)
            .build();

    private JsonDocuments() {}

    /** Parses a text; null when it is not JSON. */
    static @Nullable JsonNode read(String text) {
        try {
            JsonNode tree = MAPPER.readTree(text);
            return tree == null || tree.isMissingNode() ? null : tree;
        } catch (JsonProcessingException e) {
            return null;
        }
    }
}
