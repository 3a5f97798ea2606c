// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tracing;

import io.nereid.json.FloatStyle;
import io.nereid.json.JsonWriter;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Tensor;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/** Formats the shape and values of tensors for traces, separated by commas. Has no state. */
final class TensorFormatter {
    private TensorFormatter() {}

    static String shape(Tensor t) {
        return Arrays.stream(t.shape().dims()).mapToObj(Long::toString).collect(Collectors.joining(","));
    }

    static String values(Tensor t) {
        if (t.byteLength() == 0) {
            return "";
        }
        if (t.dataType() == DataType.BYTES) {
            List<String> texts = new ArrayList<>();
            for (int at = t.offset(); at < t.offset() + t.byteLength(); ) {
                byte[] text = new byte[t.region().getInt(at)];
                t.region().getBytes(at + 4, text, 0, text.length);
                texts.add('"' + new String(text, StandardCharsets.UTF_8) + '"');
                at += 4 + text.length;
            }
            return String.join(",", texts);
        }
        JsonWriter json = new JsonWriter(256).floatStyle(FloatStyle.SHORTEST);
        int unused = json.flatArray(t.dataType(), t.buffer(), 0, t.shape().elementCount());
        return new String(json.array(), 1, json.length() - 2, StandardCharsets.UTF_8);
    }
}
