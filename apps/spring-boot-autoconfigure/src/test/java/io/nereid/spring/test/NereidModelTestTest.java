// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.test;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.client.NereidClient;
import io.nereid.embedded.Model;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Autowired;

@NereidModelTest(properties = "nereid.embedded.models.iris.path=../../examples/models/iris/1/model.onnx")
class NereidModelTestTest {
    @Autowired
    private Model iris;

    @Autowired
    private ObjectProvider<NereidClient> clients;

    @Test
    void theModelOfThePropertiesIsThere() {
        assertThat(iris.predict(new float[][] {{6.3f, 3.3f, 6.0f, 2.5f}}).longs("label"))
                .containsExactly(2);
        assertThat(clients.getIfAvailable()).isNull();
    }
}
