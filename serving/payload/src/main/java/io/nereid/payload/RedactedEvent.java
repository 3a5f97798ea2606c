// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * An event after redaction, in the form in which it is sent. Immutable.
 *
 * @param event the original event; its data is not sent
 * @param attributes the CloudEvent's attributes by name
 * @param data the redacted body
 */
record RedactedEvent(PayloadEvent event, Map<String, String> attributes, byte[] data) {
    /** The columns of tables. */
    static final List<String> COLUMNS = List.of(
            "id",
            "type",
            "source",
            "time",
            "inferenceservicename",
            "namespace",
            "component",
            "endpoint",
            "metadata",
            "annotations",
            "recordedtime",
            "status",
            "grpcstatus",
            "messageindex",
            "withheld",
            "contenttype",
            "data",
            "data_base64");

    /** The body as text; null when it is not UTF-8. */
    @Nullable String text() {
        try {
            return StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(data))
                    .toString();
        } catch (CharacterCodingException e) {
            return null;
        }
    }

    boolean isJson() {
        String type = event.contentType();
        return type.isEmpty() || type.contains("json");
    }

    /** The values of {@link #COLUMNS}. */
    List<String> row() {
        String text = text();
        Map<String, String> all = new LinkedHashMap<>(attributes);
        all.put("contenttype", event.contentType());
        all.put("data", text == null ? "" : text);
        all.put("data_base64", text == null ? Base64.getEncoder().encodeToString(data) : "");
        List<String> row = new ArrayList<>(COLUMNS.size());
        for (String column : COLUMNS) {
            row.add(all.getOrDefault(column, ""));
        }
        return row;
    }
}
