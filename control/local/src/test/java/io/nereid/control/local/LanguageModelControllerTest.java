// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.admission.Site;
import io.nereid.control.api.store.ResourceStore.Key;
import io.nereid.control.api.store.ResourceStore.Type;
import io.nereid.control.local.workload.Fakes.FakeLoop;
import io.nereid.control.plane.languagemodel.LanguageModelController;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Test;

/** The controller of language models, with a simulated clock. */
class LanguageModelControllerTest {
    private static final Type SERVICES = new Type("serving.kserve.io", "llminferenceservices");
    private static final Type CONFIGS = new Type("serving.kserve.io", "llminferenceserviceconfigs");

    private final MemoryStore store = new MemoryStore();
    private final FakeLoop loop = new FakeLoop();
    private final List<String> events = new ArrayList<>();
    private final LanguageModelController controller = new LanguageModelController(
            store, "kserve", Site.ONE_MACHINE, (about, event) -> events.add(event.reason()), loop);

    private static ObjectNode tree(String json) {
        try {
            return (ObjectNode) new ObjectMapper().readTree(json.replace('\'', '"'));
        } catch (IOException e) {
            throw new AssertionError(json, e);
        }
    }

    private void service(String more) {
        store.create(
                SERVICES,
                tree("{'metadata':{'name':'opt','namespace':'default'" + more
                        + "},'spec':{'model':{'uri':'u'},'baseRefs':[{'name':'shared'}]}}"));
        loop.seconds(3);
    }

    private void config(String namespace) {
        store.create(
                CONFIGS, tree("{'metadata':{'name':'shared','namespace':'" + namespace + "'},'spec':{'tracing':{}}}"));
        loop.seconds(3);
    }

    private JsonNode ready(Type type, String namespace, String name) {
        for (JsonNode one : stored(type, namespace, name).path("status").path("conditions")) {
            if (one.path("type").asText().equals("Ready")) {
                return one;
            }
        }
        return tree("{}");
    }

    private ObjectNode stored(Type type, String namespace, String name) {
        return Objects.requireNonNull(store.get(new Key(type, namespace, name)));
    }

    @Test
    void aServiceWaitsForItsConfigurationAndIsThenNotSupported() {
        controller.start();
        service("");
        assertThat(ready(SERVICES, "default", "opt").path("reason").asText()).isEqualTo("ConfigNotFound");
        config("kserve");
        assertThat(ready(SERVICES, "default", "opt").path("reason").asText()).isEqualTo("LanguageModelsNotSupported");
        assertThat(ready(CONFIGS, "kserve", "shared").path("status").asText()).isEqualTo("True");
        assertThat(stored(CONFIGS, "kserve", "shared")
                        .at("/status/referencedBy/0/name")
                        .asText())
                .isEqualTo("opt");
        assertThat(events).containsExactly("ConfigNotFound", "LanguageModelsNotSupported");
        store.delete(new Key(CONFIGS, "kserve", "shared"), null);
        loop.seconds(3);
        assertThat(ready(SERVICES, "default", "opt").path("reason").asText()).isEqualTo("ConfigNotFound");
    }

    @Test
    void whatIsThereAtTheStartIsSeenAndARestWritesNothing() {
        config("default");
        service("");
        controller.start();
        loop.seconds(3);
        assertThat(ready(SERVICES, "default", "opt").path("reason").asText()).isEqualTo("LanguageModelsNotSupported");
        int writes = store.writes;
        loop.seconds(600);
        assertThat(store.writes).isEqualTo(writes);
    }

    @Test
    void aServiceOfKservesControllerIsLeftAlone() {
        controller.start();
        service(",'finalizers':['serving.kserve.io/llmisvc-finalizer']");
        assertThat(stored(SERVICES, "default", "opt").has("status")).isFalse();
        assertThat(events).isEmpty();
    }
}
