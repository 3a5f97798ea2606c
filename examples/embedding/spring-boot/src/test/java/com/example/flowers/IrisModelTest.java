// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package com.example.flowers;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.embedded.Model;
import io.nereid.spring.test.NereidModelTest;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;

/** The model of the application's properties, without the rest of the application. */
@NereidModelTest
class IrisModelTest {
    @Autowired
    private Model iris;

    @Test
    void knowsItsFlowers() {
        float[][] flowers = {{5.1f, 3.5f, 1.4f, 0.2f}, {6.3f, 3.3f, 6.0f, 2.5f}};
        assertThat(iris.predict(flowers).longs("label")).containsExactly(0, 2);
    }
}
