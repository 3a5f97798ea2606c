// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.control.core.Route.Backend;
import io.nereid.control.core.Route.IngressRule;
import io.nereid.control.core.Route.Target;
import io.nereid.control.core.Workload.Component;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class RouteCodecTest {
    private static final Route FULL = new Route(
            "default",
            "iris",
            "InferenceService",
            List.of(
                    new IngressRule("iris.default.example.com", "", null, null),
                    new IngressRule("", "/serving/default/iris", null, null),
                    new IngressRule("canary-iris.default.example.com", "", Component.PREDICTOR, "canary")),
            Map.of(
                    Component.PREDICTOR,
                    new Backend(
                            List.of(new Target("iris-predictor-00001", 80, null), new Target("p-2", 20, "canary")),
                            List.of(new Target("iris-predictor-00003", 10, null)),
                            "x-user"),
                    Component.TRANSFORMER,
                    new Backend(List.of(new Target("iris-transformer-00001", 100, null)), List.of(), null)),
            "");

    @Test
    void whatIsWrittenIsReadAgain() {
        Route graph = new Route("a", "flowers", "InferenceGraph", List.of(), Map.of(), "{\"nodes\":{\"root\":{}}}");
        assertThat(RouteCodec.read(RouteCodec.write(FULL))).isEqualTo(FULL);
        assertThat(RouteCodec.read(RouteCodec.write(graph))).isEqualTo(graph);
    }

    @Test
    void theTextOfARouteIsStable() {
        Route read = RouteCodec.read(RouteCodec.write(FULL));
        assertThat(RouteCodec.write(read)).isEqualTo(RouteCodec.write(FULL)).doesNotContain("null");
    }

    @Test
    void whatIsNotARouteIsRefused() {
        assertThatThrownBy(() -> RouteCodec.read("{")).hasMessageContaining("a route is not JSON");
        assertThatThrownBy(() -> RouteCodec.read("{}")).hasMessageContaining("a route has no namespace");
        String text = RouteCodec.write(FULL);
        assertThatThrownBy(() -> RouteCodec.read(text.replace("\"percent\":80", "\"percent\":180")))
                .hasMessageContaining("percent 180 (expected: a number from 0 to 100)");
        assertThatThrownBy(() -> RouteCodec.read(text.replace("\"predictor\":{", "\"router\":{")))
                .hasMessageContaining("component 'router' (expected: predictor, transformer or explainer)");
    }
}
