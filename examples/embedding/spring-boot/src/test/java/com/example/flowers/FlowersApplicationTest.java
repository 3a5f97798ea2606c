// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package com.example.flowers;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import org.junit.jupiter.api.Test;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.web.server.LocalServerPort;

/** The whole application on a free port. */
@SpringBootTest(webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT)
class FlowersApplicationTest {
    @LocalServerPort
    private int port;

    @Test
    void namesAFlower() throws Exception {
        HttpResponse<String> answer = post("{\"measures\": [5.1, 3.5, 1.4, 0.2]}");
        assertThat(answer.statusCode()).isEqualTo(200);
        assertThat(answer.body()).contains("\"species\":\"setosa\"");
    }

    @Test
    void refusesAFlowerWithThreeMeasures() throws Exception {
        HttpResponse<String> answer = post("{\"measures\": [5.1, 3.5, 1.4]}");
        assertThat(answer.statusCode()).isEqualTo(400);
        assertThat(answer.body()).contains("input");
    }

    @Test
    void isReadyWhileTheModelServes() throws Exception {
        assertThat(send(request("/actuator/health/readiness").build()).body()).contains("UP");
        assertThat(send(request("/actuator/metrics/nereid.requests").build()).body()).contains("nereid.requests");
    }

    private HttpResponse<String> post(String body) throws IOException, InterruptedException {
        return send(request("/classify")
                .header("content-type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(body))
                .build());
    }

    private HttpRequest.Builder request(String path) {
        return HttpRequest.newBuilder(URI.create("http://localhost:" + port + path));
    }

    private static HttpResponse<String> send(HttpRequest request) throws IOException, InterruptedException {
        return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
    }
}
