// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

import io.nereid.base.ServingException;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;

/** The streams that {@code src/test/python/make_arrow.py} wrote with pyarrow and polars. Stateless. */
final class ArrowFixtures {
    private ArrowFixtures() {}

    static byte[] read(String file) {
        try (InputStream in = ArrowFixtures.class.getResourceAsStream("/arrow/" + file)) {
            if (in == null) {
                throw new AssertionError("no fixture " + file);
            }
            return in.readAllBytes();
        } catch (IOException e) {
            throw new AssertionError(file, e);
        }
    }

    static byte[] stream(String name) {
        return read(name + ".arrows");
    }

    /** All columns of a stream as tensors of the types that the stream has, closed by the caller. */
    static List<Tensor> tensors(MemoryRegion body, long limit) {
        ArrowTable table = ArrowStreamReader.read(body);
        ColumnTensors tensors = new ColumnTensors(body, limit);
        List<Tensor> all = new ArrayList<>();
        try {
            for (ArrowColumn column : table.columns()) {
                ArrowField field = column.field();
                Shape shape = field.row().prepend(table.rows());
                all.add(tensors.of(column, field.name(), field.type(), shape));
            }
            return all;
        } catch (ServingException e) {
            Tensor.closeAll(all);
            throw e;
        }
    }
}
