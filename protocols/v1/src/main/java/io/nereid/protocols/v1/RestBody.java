// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1;

import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.tensor.MemoryRegion;
import java.nio.charset.StandardCharsets;

/**
 * The body of a REST request: one object, whose fields may come in any order. Finds where the known ones are; their values
 * are read from there. Reused; confined to one thread.
 */
final class RestBody {
    /** Not given. */
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

    RestBody(boolean trailingText) {
        this.trailingText = trailingText;
    }

    /** Reads the body through, checking all of its syntax, and finds its fields. */
    void open(MemoryRegion body) {
        begin(body.size());
        body.getBytes(0, text, 0, length);
        read();
    }

    /** As {@link #open(MemoryRegion)}, of the first bytes of an array. */
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
            }
            reader.skipValue();
        }
        return name;
    }

    /** Gives the memory of a large body back; for the end of every request. */
    void close() {
        if (text.length > KEPT) {
            text = new byte[4096];
            reader.reset(text, 0, 0);
        }
    }

    /** The reader, which stands anywhere. */
    JsonReader reader() {
        return reader;
    }

    /** Another reader of the same body, at its beginning; for those who ask what was wrong with it. */
    JsonReader secondReader() {
        JsonReader second = new JsonReader();
        second.reset(text, 0, length);
        return second;
    }

    /** The {@code signature_name}, or empty. */
    String signature() {
        return signature;
    }

    /** Whether it has none of the fields that hold what a model is asked. */
    boolean asksNothing() {
        return instances == NONE && inputs == NONE && examples == NONE;
    }

    /** Where the value of {@code instances} is, or {@link #NONE}. */
    int instances() {
        return instances;
    }

    /** Where the value of {@code inputs} is, or {@link #NONE}. */
    int inputs() {
        return inputs;
    }

    /** Where the value of {@code context} is, or {@link #NONE}. */
    int context() {
        return context;
    }

    /** Where the value of {@code examples} is, or {@link #NONE}. */
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
            // Not a value: whatever is there is shown.
        }
        return new String(text, from, Math.min(to - from, LONGEST_EXCERPT), StandardCharsets.UTF_8)
                + (to - from > LONGEST_EXCERPT ? "..." : "");
    }
}
