// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.store.ResourceStore.Key;
import io.nereid.control.api.store.ResourceStore.Type;
import io.nereid.control.local.localmodel.LocalModelController;
import io.nereid.control.local.workload.Fakes.FakeArtifacts;
import io.nereid.control.local.workload.Fakes.FakeLoop;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The controller of models in advance, with a simulated clock and simulated downloads. */
class LocalModelControllerTest {
    private static final Type CACHES = new Type("serving.kserve.io", "localmodelcaches");
    private static final Type NAMESPACE_CACHES = new Type("serving.kserve.io", "localmodelnamespacecaches");
    private static final Type GROUPS = new Type("serving.kserve.io", "localmodelnodegroups");
    private static final Type NODES = new Type("serving.kserve.io", "localmodelnodes");
    private static final Type SERVICES = new Type("serving.kserve.io", "inferenceservices");

    @TempDir
    Path disk;

    private final MemoryStore store = new MemoryStore();
    private final FakeLoop loop = new FakeLoop();
    private final FakeArtifacts artifacts = new FakeArtifacts();
    private final List<String> events = new ArrayList<>();
    private final LocalModelController controller = new LocalModelController(
            store, artifacts, (about, event) -> events.add(event.type() + " " + event.reason()), loop);

    @BeforeEach
    void start() throws IOException {
        artifacts.others = Files.createDirectories(disk.resolve("model"));
        Files.write(artifacts.others.resolve("weights"), new byte[600]);
        controller.start();
        loop.seconds(1);
    }

    private static ObjectNode tree(String json) {
        try {
            return (ObjectNode) new ObjectMapper().readTree(json.replace('\'', '"'));
        } catch (IOException e) {
            throw new AssertionError(json, e);
        }
    }

    private void group(String limit) {
        store.create(GROUPS, tree("{'metadata':{'name':'disk'},'spec':{'storageLimit':'" + limit + "'}}"));
        loop.seconds(3);
    }

    private void cache(String name, String size) {
        store.create(
                CACHES,
                tree("{'metadata':{'name':'" + name + "'},'spec':{'sourceModelUri':'s3://models/" + name
                        + "','modelSize':'" + size + "','nodeGroups':['disk']}}"));
        loop.seconds(3);
    }

    private ObjectNode stored(Type type, String namespace, String name) {
        return Objects.requireNonNull(store.get(new Key(type, namespace, name)));
    }

    private String status(String name) {
        return stored(CACHES, "", name).path("status").toString().replace('"', '\'');
    }

    @Test
    void aModelIsDownloadedAndKeptUntilItsResourceGoes() {
        group("1k");
        cache("iris", "700");
        assertThat(status("iris"))
                .isEqualTo("{'nodeStatus':{'localhost':'NodeDownloaded'},'copies':{'total':1,'available':1},"
                        + "'messages':{'localhost':'600 bytes'}}");
        assertThat(stored(NODES, "", "localhost").path("spec").toString().replace('"', '\''))
                .isEqualTo(
                        "{'localModels':[{'sourceModelUri':'s3://models/iris','modelName':'iris','nodeGroup':'disk'}]}");
        assertThat(stored(NODES, "", "localhost").at("/status/modelStatus/iris").asText())
                .isEqualTo("ModelDownloaded");
        assertThat(stored(GROUPS, "", "disk").path("status").toString())
                .isEqualTo("{\"used\":\"700\",\"available\":\"300\"}");
        assertThat(artifacts.leases).isEqualTo(1);
        assertThat(events).containsExactly("Normal ModelDownloaded");
        int writes = store.writes;
        loop.seconds(600);
        assertThat(store.writes).isEqualTo(writes);
        assertThat(artifacts.fetches).isEqualTo(1);
        store.delete(new Key(CACHES, "", "iris"), null);
        loop.seconds(3);
        assertThat(artifacts.leases).isZero();
        assertThat(store.get(new Key(NODES, "", "localhost"))).isNull();
        assertThat(stored(GROUPS, "", "disk").at("/status/used").asText()).isEqualTo("0");
    }

    @Test
    void theLimitOfAGroupHolds() {
        group("1k");
        cache("a", "700");
        cache("b", "400");
        assertThat(status("b"))
                .contains("'failed':1", "NodeDownloadError")
                .contains(
                        "the LocalModelNodeGroup disk has 1000 bytes, of which other models have 700, and modelSize is"
                                + " 400; raise its storageLimit, or delete another model");
        assertThat(artifacts.fetches).isEqualTo(1);
        assertThat(events).contains("Warning ModelDownloadError");
        store.delete(new Key(CACHES, "", "a"), null);
        loop.seconds(3);
        // The model itself is larger than it says.
        assertThat(status("b")).contains("the model has 600 bytes, more than modelSize, 400");
        assertThat(artifacts.leases).isZero();
    }

    @Test
    void aMissingGroupIsNamedAndAwaited() {
        cache("iris", "700");
        assertThat(status("iris")).contains("there is no LocalModelNodeGroup disk; create it'");
        assertThat(artifacts.fetches).isZero();
        group("1k");
        assertThat(status("iris")).contains("'available':1");
    }

    @Test
    void aFailedDownloadIsTriedAgainAfterAMinute() {
        artifacts.failing.put("s3://models/iris", ServingException.of(ErrorCode.UNAVAILABLE, "the store is away"));
        group("1k");
        cache("iris", "700");
        assertThat(status("iris")).contains("NodeDownloadError", "the store is away");
        assertThat(artifacts.fetches).isEqualTo(1);
        artifacts.failing.clear();
        loop.seconds(30);
        assertThat(artifacts.fetches).isEqualTo(1);
        loop.seconds(60);
        assertThat(artifacts.fetches).isEqualTo(2);
        assertThat(status("iris")).contains("NodeDownloaded'");
    }

    @Test
    void theServicesOfAModelAreListed() {
        group("10k");
        store.create(
                NAMESPACE_CACHES,
                tree("{'metadata':{'name':'mine','namespace':'team'},'spec':{'sourceModelUri':'s3://models/iris',"
                        + "'modelSize':'700','nodeGroups':['disk']}}"));
        cache("iris", "700");
        for (String namespace : List.of("team", "other")) {
            store.create(
                    SERVICES,
                    tree("{'metadata':{'name':'flower','namespace':'" + namespace
                            + "'},'spec':{'predictor':{'model':{'storageUri':'s3://models/iris'}}}}"));
        }
        loop.seconds(3);
        assertThat(stored(CACHES, "", "iris").at("/status/inferenceServices")).hasSize(2);
        assertThat(stored(NAMESPACE_CACHES, "team", "mine")
                        .at("/status/inferenceServices")
                        .toString())
                .isEqualTo("[{\"namespace\":\"team\",\"name\":\"flower\"}]");
        assertThat(stored(NODES, "", "localhost").path("status").toString())
                .contains("\"team/mine\":\"ModelDownloaded\"");
    }
}
