// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.backends.sklearn.EstimatorFactory;
import io.nereid.backends.sklearn.Models;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/**
 * Every estimator whose attributes are missing, or have another shape, or hold what is not a number, is refused with a
 * sentence or built, and causes no other error.
 */
class DamagedAttributesTest {
    /** Of each class, in so many objects of the fixtures every attribute is damaged. */
    private static final int OBJECTS = 2;

    /** What stands in the place of an attribute; a text that no attribute has stands for none. */
    private static final List<Object> INSTEAD =
            List.of("", array(new int[] {0}), array(new int[] {2, 3, 4}), array(new int[] {7}), -5L);

    private static NdArray array(int[] shape) {
        int count = 1;
        for (int d : shape) {
            count *= d;
        }
        ByteBuffer cells = ByteBuffer.allocate(count * Double.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < count; i++) {
            cells.putDouble(Double.NaN);
        }
        return new NdArray(shape, DType.parse("f8"), false, cells.array());
    }

    @Test
    void attributesThatAreMissingOrOfOtherShapesAreRefusedWithASentence() {
        Set<String> wrong = new TreeSet<>();
        Map<String, Integer> seen = new HashMap<>();
        int built = 0;
        int refused = 0;
        for (Map.Entry<String, JsonNode> e : Fixtures.expected(Fixtures.NEW).properties()) {
            String file = e.getValue().get("file").asText();
            if (file.endsWith(".skops") || e.getKey().matches("(xgb|lgbm|cat)(_.*)?")) {
                continue;
            }
            Object model = ModelFile.read(Fixtures.path(Fixtures.NEW, file), MemoryLimit.ofHeap());
            for (PyObject object : objects(model)) {
                if (seen.merge(object.type().path(), 1, Integer::sum) > OBJECTS) {
                    continue;
                }
                for (String name : List.copyOf(object.attributes().keySet())) {
                    Object before = object.attributes().get(name);
                    for (Object other : INSTEAD) {
                        if (other.equals("")) {
                            object.attributes().remove(name);
                        } else {
                            object.attributes().put(name, other);
                        }
                        try {
                            new EstimatorFactory(Models.boosters()).build(model);
                            built++;
                        } catch (ServingException refusal) {
                            refused++;
                            assertThat(refusal.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                        } catch (RuntimeException fault) {
                            wrong.add(object.type().name() + "." + name + ": " + fault);
                        }
                    }
                    object.attributes().put(name, before);
                }
            }
        }
        assertThat(wrong).isEmpty();
        assertThat(built).isPositive();
        assertThat(refused).isGreaterThan(1000);
    }

    /** The objects of a file with attributes, each once. */
    private static List<PyObject> objects(Object root) {
        Set<Object> seen = Collections.newSetFromMap(new IdentityHashMap<>());
        List<Object> todo = new ArrayList<>(List.of(root));
        List<PyObject> objects = new ArrayList<>();
        for (int i = 0; i < todo.size() && i < 200; i++) {
            Object value = todo.get(i);
            if (!seen.add(value)) {
                continue;
            }
            if (value instanceof PyObject object) {
                objects.add(object);
                todo.addAll(object.attributes().values());
            } else if (value instanceof PyList list) {
                todo.addAll(list.items());
            } else if (value instanceof PyTuple tuple) {
                todo.addAll(tuple.items());
            }
        }
        return objects;
    }
}
