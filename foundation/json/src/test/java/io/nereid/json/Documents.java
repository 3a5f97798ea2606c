// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.assertj.core.api.AbstractThrowableAssert;
import org.assertj.core.api.Assertions;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/** Documents for tests. Stateless. */
public final class Documents {
    private Documents() {}

    static JsonReader reader(String json) {
        return reader(json.getBytes(StandardCharsets.UTF_8));
    }

    static JsonReader reader(byte[] json) {
        JsonReader reader = new JsonReader();
        reset(reader, json);
        return reader;
    }

    static void reset(JsonReader reader, byte[] json) {
        byte[] padded = Arrays.copyOf(json, json.length + JsonReader.SLACK);
        Arrays.fill(padded, json.length, padded.length, (byte) '7');
        reader.reset(padded, 0, json.length);
    }

    public static ByteBuffer direct(int bytes) {
        return ByteBuffer.allocateDirect(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Reads a flat or nested array of {@code count} elements and checks that the document ends there. */
    public static ByteBuffer readTensor(DataType type, String json, int count) {
        JsonReader reader = reader(json);
        ByteBuffer dst = direct(count * type.size());
        new TensorReader(reader).read(type, dst, 0, count);
        reader.expectEnd();
        return dst;
    }

    public static String print(java.util.function.Consumer<JsonWriter> writing) {
        JsonWriter writer = new JsonWriter(1);
        writing.accept(writer);
        return text(writer);
    }

    static String text(JsonWriter writer) {
        return new String(writer.array(), 0, writer.length(), StandardCharsets.UTF_8);
    }

    static AbstractThrowableAssert<?, ?> assertRefused(ThrowingCallable call) {
        return Assertions.assertThatThrownBy(call)
                .isInstanceOfSatisfying(
                        ServingException.class,
                        e -> Assertions.assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT));
    }
}
