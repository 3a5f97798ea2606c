// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.rest;

import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.tensor.MemoryRegion;
import java.nio.charset.StandardCharsets;

/**
 * The body of a REST request: a JSON object whose fields may come in any order. {@link #open} checks its syntax and
 * records the positions of the known fields, whose values are then read from there. Reused; confined to one thread.
 */
final class RestRequestBody {
    /** The position of a field that is absent. */
    static final int NONE = -1;

    private static final int KEPT = 1 << 20;
    private static final int LONGEST_EXCERPT = 256;

    private final JsonReader reader = new JsonReader();
    private final boolean trailingText;
    private byte[] text = new byte[4096];
    private int length;

    private String signature = "";
    private int instances;
    private int inputs;
    private int context;
    private int examples;

    RestRequestBody(boolean trailingText) {
        this.trailingText = trailingText;
    }

    /** Checks the syntax of the whole body and finds its fields. */
    void open(MemoryRegion body) {
        begin(body.size());
        body.getBytes(0, text, 0, length);
        read();
    }

    /** As {@link #open(MemoryRegion)}, for the first {@code size} bytes of an array. */
    void open(byte[] body, int size) {
        begin(size);
        System.arraycopy(body, 0, text, 0, length);
        read();
    }

    private void begin(int size) {
        length = size;
        if (text.length < length + JsonReader.SLACK) {
            text = new byte[length + JsonReader.SLACK + 1024];
        }
    }

    private void read() {
        reader.reset(text, 0, length);
        signature = "";
        instances = NONE;
        inputs = NONE;
        context = NONE;
        examples = NONE;
        JsonToken first = JsonToken.OBJECT;
        int name = NONE;
        try {
            first = reader.peek();
            if (first == JsonToken.OBJECT) {
                name = scan();
            } else if (first != JsonToken.END_OF_INPUT) {
                reader.skipValue();
            }
            if (!trailingText) {
                reader.expectEnd();
            }
        } catch (ServingException e) {
            throw ServingException.invalidArgument(
                    "Unrecognized request format: JSON Parse error: "
                            + e.getMessage().replace(" at byte offset ", " at offset: "),
                    e.remedy());
        }
        if (first == JsonToken.END_OF_INPUT) {
            throw ServingException.invalidArgument(
                    "Unrecognized request format: JSON Parse error: The document is empty");
        }
        if (first != JsonToken.OBJECT) {
            throw ServingException.invalidArgument("JSON Value: " + excerpt(0) + " Is not object");
        }
        if (name != NONE) {
            reader.seek(name);
            if (reader.peek() != JsonToken.STRING) {
                throw ServingException.invalidArgument("JSON Value: " + excerpt(0)
                        + " not formatted correctly. 'signature_name' key must be a string value.");
            }
            signature = reader.readString();
        }
    }

    private int scan() {
        int name = NONE;
        reader.beginObject();
        while (reader.nextField()) {
            int at = reader.position();
            if (reader.keyEquals("instances")) {
                instances = at;
            } else if (reader.keyEquals("inputs")) {
                inputs = at;
            } else if (reader.keyEquals("signature_name")) {
                name = at;
            } else if (reader.keyEquals("examples")) {
                examples = at;
            } else if (reader.keyEquals("context")) {
                context = at;
            } else {
                reader.skipUnread();
                continue;
            }
            reader.skipValue();
        }
        return name;
    }

    /** Releases the memory of a large body; called at the end of every request. */
    void close() {
        if (text.length > KEPT) {
            text = new byte[4096];
            reader.reset(text, 0, 0);
        }
    }

    /** The reader, at an unspecified position. */
    JsonReader reader() {
        return reader;
    }

    /** Another reader at the beginning of the same body, for the description of errors. */
    JsonReader secondReader() {
        JsonReader second = new JsonReader();
        second.reset(text, 0, length);
        return second;
    }

    /** The {@code signature_name}, or empty. */
    String signature() {
        return signature;
    }

    /** Whether the body does not have any field that holds input. */
    boolean hasNoInput() {
        return instances == NONE && inputs == NONE && examples == NONE;
    }

    /** The position of the value of {@code instances}, or {@link #NONE}. */
    int instances() {
        return instances;
    }

    /** The position of the value of {@code inputs}, or {@link #NONE}. */
    int inputs() {
        return inputs;
    }

    /** The position of the value of {@code context}, or {@link #NONE}. */
    int context() {
        return context;
    }

    /** The position of the value of {@code examples}, or {@link #NONE}. */
    int examples() {
        return examples;
    }

    /** The text of the value at a position, cut to 256 bytes. */
    String excerpt(int at) {
        JsonReader second = secondReader();
        second.seek(at);
        int from = at;
        int to = length;
        try {
            boolean unused = second.peek() == JsonToken.NULL;
            from = second.position();
            second.skipValue();
            to = second.position();
        } catch (ServingException e) {
            // Not a value: show the text from there on.
        }
        return new String(text, from, Math.min(to - from, LONGEST_EXCERPT), StandardCharsets.UTF_8)
                + (to - from > LONGEST_EXCERPT ? "..." : "");
    }
}
