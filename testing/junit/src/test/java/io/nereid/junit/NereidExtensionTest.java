// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.junit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.embedded.Model;
import io.nereid.embedded.Nereid;
import io.nereid.embedded.server.EmbeddedServer;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

@NereidTest(
        models = {
            "flowers=../../examples/models/iris/1/model.onnx",
            "sums=${user.dir}/../../examples/models/simple/1/model.onnx"
        },
        server = true)
class NereidExtensionTest {
    private static Nereid first;

    @Test
    void parametersAreTheModels(@ModelName("flowers") Model flowers, @ModelName("sums") Model sums, Nereid nereid) {
        assertThat(flowers.predict(new float[][] {{5.1f, 3.5f, 1.4f, 0.2f}}).longs("label"))
                .containsExactly(0);
        assertThat(sums.metadata().inputs()).hasSize(2);
        same(nereid);
    }

    @Test
    void theServerAnswersOnItsPort(EmbeddedServer server, Nereid nereid) throws Exception {
        HttpResponse<String> answer = HttpClient.newHttpClient()
                .send(
                        HttpRequest.newBuilder(URI.create("http://localhost:" + server.port() + "/v2/models/flowers"))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
        assertThat(answer.statusCode()).isEqualTo(200);
        same(nereid);
    }

    @Nested
    class Inside {
        @Test
        void nestedClassesHaveTheSameModels(Nereid nereid) {
            same(nereid);
            assertThat(nereid.isReady()).isTrue();
            assertThatThrownBy(() -> nereid.model("other")).hasMessageContaining("flowers, sums");
        }
    }

    private static void same(Nereid nereid) {
        first = first == null ? nereid : first;
        assertThat(nereid).isSameAs(first);
    }
}
