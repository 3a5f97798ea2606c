// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package com.example.iris;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.nereid.embedded.Model;
import io.nereid.embedded.server.EmbeddedServer;
import io.nereid.junit.NereidTest;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import org.junit.jupiter.api.Test;

/** Models for tests: in the process, and at a port for an application's own client. */
@NereidTest(models = "iris=${models}/iris", server = true)
class IrisServerTest {
    @Test
    void theModelAnswers(Model iris) {
        assertEquals(2, iris.predict(new float[][] {{6.3f, 3.3f, 6.0f, 2.5f}}).longs("label")[0]);
    }

    @Test
    void theServerAnswers(EmbeddedServer server) throws IOException, InterruptedException {
        URI ready = URI.create("http://localhost:" + server.port() + "/v2/models/iris/ready");
        HttpResponse<Void> answer = HttpClient.newHttpClient()
                .send(HttpRequest.newBuilder(ready).build(), HttpResponse.BodyHandlers.discarding());
        assertEquals(200, answer.statusCode());
    }
}
