// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees.format;

import io.nereid.backends.trees.forest.GrowableArrays;
import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;

/** Reads a document in JSON. Confined to one thread. */
final class JsonDocumentReader implements DocumentReader {
    private final JsonReader reader = new JsonReader();

    /** @param bytes the document, followed by {@link JsonReader#SLACK} more bytes */
    JsonDocumentReader(byte[] bytes, int length) {
        reader.reset(bytes, 0, length);
    }

    @Override
    public void beginObject() {
        reader.beginObject();
    }

    @Override
    public boolean nextField() {
        return reader.nextField();
    }

    @Override
    public String key() {
        return reader.key();
    }

    @Override
    public void beginArray() {
        reader.beginArray();
    }

    @Override
    public boolean hasNext() {
        return reader.hasNext();
    }

    @Override
    public String text() {
        JsonToken token = reader.peek();
        if (token == JsonToken.STRING) {
            return reader.readString();
        }
        if (token == JsonToken.BOOLEAN) {
            return String.valueOf(reader.readBoolean());
        }
        if (token == JsonToken.NUMBER && reader.isIntegral()) {
            return String.valueOf(reader.readLong());
        }
        return String.valueOf(reader.readDouble());
    }

    @Override
    public float[] floats() {
        GrowableArrays.Floats items = new GrowableArrays.Floats();
        reader.beginArray();
        while (reader.hasNext()) {
            items.add(reader.peek() == JsonToken.BOOLEAN ? reader.readBoolean() ? 1 : 0 : reader.readFloat());
        }
        return items.toArray();
    }

    @Override
    public int[] ints() {
        GrowableArrays.Ints items = new GrowableArrays.Ints();
        reader.beginArray();
        while (reader.hasNext()) {
            if (reader.peek() == JsonToken.BOOLEAN) {
                items.add(reader.readBoolean() ? 1 : 0);
            } else if (reader.isIntegral()) {
                items.add(reader.readInt());
            } else {
                items.add(whole(reader.readDouble()));
            }
        }
        return items.toArray();
    }

    static int whole(double value) {
        if (value != Math.rint(value) || Math.abs(value) > Integer.MAX_VALUE) {
            throw ServingException.invalidArgument("found " + value + " (expected: a 32-bit integer)");
        }
        return (int) value;
    }

    @Override
    public void skip() {
        reader.skipValue();
    }

    @Override
    public void end() {
        reader.expectEnd();
    }
}
