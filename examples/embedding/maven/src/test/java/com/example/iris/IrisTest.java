// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package com.example.iris;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

class IrisTest {
    private static final Path MODELS = Path.of(System.getProperty("models"));

    @Test
    void flowersHaveTheirNames() {
        try (Iris iris = Iris.load(MODELS)) {
            assertEquals("setosa", iris.classify(5.1f, 3.5f, 1.4f, 0.2f));
            assertEquals("virginica", iris.classify(6.3f, 3.3f, 6.0f, 2.5f));
        }
    }

    @Test
    void aFlowerWithThreeMeasuresIsRejected() {
        try (Iris iris = Iris.load(MODELS)) {
            ServingException e = assertThrows(ServingException.class, () -> iris.classify(5.1f, 3.5f, 1.4f));
            assertEquals(ErrorCode.INVALID_ARGUMENT, e.code());
        }
    }
}
