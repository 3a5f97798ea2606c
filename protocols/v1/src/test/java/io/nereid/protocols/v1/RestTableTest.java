// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.protocols.v1.common.V1Options;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Rows of a table whose columns have an input each, as lists. */
class RestTableTest {
    private final FakeEngine engine = new FakeEngine();
    private final FakeClient client = new FakeClient(new V1Codec(
            engine, engine, Runnable::run, V1Options.builder(Clock.system()).build()));

    private FakeExchange ask(String names, String body) {
        List<TensorSpec> specs = List.of(
                new TensorSpec("rows", DataType.FP32, Shape.of(-1, 2), true),
                new TensorSpec("city", DataType.BYTES, Shape.of(-1), true),
                new TensorSpec("age", DataType.INT64, Shape.of(-1), true));
        Map<String, String> properties = names.isEmpty() ? Map.of() : Map.of("feature_names", names);
        engine.add(
                new ModelMetadata(new ServableId("m", 3), "fake", specs, specs, 0, properties),
                r -> r.inputs().stream().map(Tensor::retain).toList());
        return client.call("POST", "/v1/models/m:predict", body);
    }

    @Test
    void valuesGoToTheColumnsInTheTablesOrder() {
        assertThat(ask("age,city", "{\"instances\":[[1,\"Bern\"],[2,\"Chur\"]]}")
                        .text())
                .isEqualTo("{\"predictions\":[{\"age\":1,\"city\":\"Bern\"},{\"age\":2,\"city\":\"Chur\"}]}");
    }

    @Test
    void rowsOfAnotherLengthAreRejected() {
        FakeExchange x = ask("age,city", "{\"instances\":[[1,\"Bern\"],[2]]}");
        assertThat(x.status()).isEqualTo(400);
        assertThat(x.text()).contains("Failed to process element: 1", "It has 1 values (expected: 2)", "age,city");
        assertThat(ask("age,city", "{\"instances\":[[1,\"Bern\",3]]}").text()).contains("It has 3 values");
    }

    @Test
    void aValueOfAnotherKindIsNamedWithItsColumn() {
        assertThat(ask("age,city", "{\"instances\":[[\"old\",\"Bern\"]]}").text())
                .contains("Failed to process element: 0 of 'instances' list, 'age'");
    }

    @Test
    void withoutNamesOfColumnsRowsAreObjects() {
        assertThat(ask("", "{\"instances\":[[1,\"Bern\"]]}").text()).contains("instances is a plain list");
        assertThat(ask("age,street", "{\"instances\":[[1,\"Bern\"]]}").text()).contains("instances is a plain list");
        assertThat(ask("age,city", "{\"instances\":[1,2]}").text()).contains("instances is a plain list");
    }
}
