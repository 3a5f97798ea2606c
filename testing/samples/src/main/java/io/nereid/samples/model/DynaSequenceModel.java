// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples.model;

import io.nereid.backends.java.BuiltInModel;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Sums the values of a sequence by its correlation id. The response to the last request also adds the id, so that a
 * test can check it; a string id must be a number. Confined to one instance.
 */
public final class DynaSequenceModel extends SequenceSumModel {
    private final Map<Long, Double> sums = new HashMap<>();

    public DynaSequenceModel(ModelConfig config) {
        super(config);
    }

    @Override
    public BuiltInModel forInstance() {
        return new DynaSequenceModel(config());
    }

    @Override
    double add(List<Tensor> inputs, int row, double value) {
        if (!yes(inputs, "READY", row)) {
            return 0;
        }
        long id = id(named(inputs, "CORRID"), row);
        double sum = value;
        if (!yes(inputs, "START", row)) {
            sum += sums.getOrDefault(id, 0.0);
        }
        if (yes(inputs, "END", row)) {
            sums.remove(id);
            return sum + id;
        }
        sums.put(id, sum);
        return sum;
    }

    private static long id(Tensor ids, int row) {
        ByteBuffer from = ids.buffer();
        return switch (ids.dataType()) {
            case INT32, UINT32 -> from.getInt(4 * row);
            case INT64, UINT64 -> from.getLong(8 * row);
            default -> number(text(from, row));
        };
    }

    private static String text(ByteBuffer from, int row) {
        for (int i = 0; i < row; i++) {
            int length = from.getInt();
            from.position(from.position() + length);
        }
        byte[] bytes = new byte[from.getInt()];
        from.get(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private static long number(String text) {
        try {
            return Long.parseLong(text);
        } catch (NumberFormatException e) {
            throw ServingException.invalidArgument("correlation id '" + text + "' is not a number (expected: digits)");
        }
    }
}
