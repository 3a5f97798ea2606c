// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.routing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ServingException;
import io.nereid.base.access.Operation;
import io.nereid.transport.api.HttpRoute;
import java.util.List;
import org.junit.jupiter.api.Test;

class RouteTableTest {
    private final RouteTable table = new RouteTable(List.of(
            HttpRoute.get("/v2", Operation.INFERENCE, x -> {}),
            HttpRoute.get("/v2/models/stats", Operation.INFERENCE, x -> {}),
            HttpRoute.get("/v2/models/{model}", Operation.INFERENCE, x -> {}),
            HttpRoute.get("/v2/models/{model}/ready", Operation.INFERENCE, x -> {}),
            HttpRoute.get("/v2/models/{model}/versions/{version}/ready", Operation.INFERENCE, x -> {}),
            HttpRoute.get("/v1/models/{model}", Operation.INFERENCE, x -> {}),
            HttpRoute.post("/v1/models/{model}:predict", Operation.INFERENCE, x -> {}),
            HttpRoute.post("/v1/models/{model}/versions/{version}:predict", Operation.INFERENCE, x -> {}),
            HttpRoute.get("/", Operation.INFERENCE, x -> {})));

    private String find(String method, String path) {
        RouteTable.Match m = table.match(method, path);
        HttpRoute route = m.route();
        return route == null ? "" + m.status() : route.template() + " " + List.of(m.parameters());
    }

    @Test
    void literalsWinOverPlaceholders() {
        assertThat(find("GET", "/v2/models/stats")).isEqualTo("/v2/models/stats []");
        assertThat(find("GET", "/v2/models/other")).isEqualTo("/v2/models/{model} [other]");
    }

    @Test
    void aLiteralThatLeadsNowhereGivesWayToAPlaceholder() {
        assertThat(find("GET", "/v2/models/stats/ready")).isEqualTo("/v2/models/{model}/ready [stats]");
    }

    @Test
    void aKnownVerbIsCutOffAndAnUnknownOneBelongsToTheName() {
        assertThat(find("POST", "/v1/models/m:predict")).isEqualTo("/v1/models/{model}:predict [m]");
        assertThat(find("POST", "/v1/models/a:b:predict")).isEqualTo("/v1/models/{model}:predict [a:b]");
        assertThat(find("POST", "/v1/models/m/versions/3:predict"))
                .isEqualTo("/v1/models/{model}/versions/{version}:predict [m, 3]");
        assertThat(find("GET", "/v1/models/m:other")).isEqualTo("/v1/models/{model} [m:other]");
        assertThat(find("GET", "/v1/models/m:predict")).isEqualTo("405");
        assertThat(find("POST", "/v1/models/:predict")).isEqualTo("405");
        assertThat(find("POST", "/v1/models/m%3Apredict")).isEqualTo("405");
    }

    @Test
    void emptySegmentsMatchNoPlaceholder() {
        assertThat(find("GET", "/v2/models/")).isEqualTo("404");
        assertThat(find("GET", "/v2/models//ready")).isEqualTo("404");
        assertThat(find("GET", "/v2/")).isEqualTo("404");
        assertThat(find("GET", "/")).isEqualTo("/ []");
        assertThat(find("GET", "*")).isEqualTo("404");
    }

    @Test
    void headIsServedByGet() {
        assertThat(find("HEAD", "/v2")).isEqualTo("/v2 []");
        assertThat(table.match("DELETE", "/v2").text()).isEqualTo("GET, HEAD");
    }

    @Test
    void theRestOfAPathIsTakenWhenNothingElseTakesPathAndVerb() {
        RouteTable rest = new RouteTable(List.of(
                HttpRoute.get("/v1/models", Operation.INFERENCE, x -> {}),
                HttpRoute.get("/v1/models/{model}", Operation.INFERENCE, x -> {}),
                new HttpRoute(HttpRoute.ANY, "/v1/models/{rest...}", Operation.INFERENCE, x -> {}),
                new HttpRoute("POST", "/v1/models/special/{rest...}", Operation.INFERENCE, x -> {})));
        assertThat(template(rest, "GET", "/v1/models")).isEqualTo("/v1/models");
        assertThat(template(rest, "GET", "/v1/models/m")).isEqualTo("/v1/models/{model}");
        assertThat(template(rest, "POST", "/v1/models/m")).isEqualTo("/v1/models/{rest...}");
        assertThat(template(rest, "PUT", "/v1/models")).isEqualTo("/v1/models/{rest...}");
        assertThat(template(rest, "GET", "/v1/models/a/b/c")).isEqualTo("/v1/models/{rest...}");
        assertThat(template(rest, "POST", "/v1/models/special/b")).isEqualTo("/v1/models/special/{rest...}");
        assertThat(template(rest, "PUT", "/v1/models/special/b")).isEqualTo("/v1/models/{rest...}");
        assertThat(rest.match("GET", "/v1/modelsandmore").status()).isEqualTo(404);
        assertThat(rest.match("GET", "/v1").status()).isEqualTo(404);
    }

    private static String template(RouteTable routes, String method, String path) {
        HttpRoute route = routes.match(method, path).route();
        return route == null ? "none" : route.template();
    }

    @Test
    void twoRoutesForOnePathAreRejected() {
        assertThatThrownBy(() -> new RouteTable(List.of(
                        HttpRoute.get("/a/{x}", Operation.INFERENCE, e -> {}),
                        HttpRoute.get("/a/{y}", Operation.INFERENCE, e -> {}))))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("/a/{y}")
                .hasMessageContaining("/a/{x}");
    }
}
