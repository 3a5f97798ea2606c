// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.controlplane;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpServer;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.store.FileResourceStore;
import io.nereid.payload.ObjectStore;
import io.nereid.payload.PayloadOrigin;
import io.nereid.payload.PayloadSettings;
import io.nereid.storage.Storage;
import io.nereid.storage.request.StorageOptions;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The credentials with which a payload logger writes to an object store. */
@SuppressWarnings("NullAway.Init") // set before each test
class LogStoresTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    private record Put(String path, String authorization, String body) {}

    private final List<Put> puts = new CopyOnWriteArrayList<>();
    private HttpServer server;
    private ResourceStore store;
    private Storage storage;
    private ServiceArtifactFetcher artifacts;

    @TempDir
    private Path dir;

    @BeforeEach
    void start() throws Exception {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            puts.add(new Put(
                    exchange.getRequestMethod() + " " + exchange.getRequestURI(),
                    String.valueOf(exchange.getRequestHeaders().getFirst("Authorization")),
                    new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8)));
            exchange.sendResponseHeaders(200, -1);
            exchange.close();
        });
        server.start();
        store = FileResourceStore.open(dir.resolve("store"), Clock.system());
        storage = new Storage(
                StorageOptions.defaults(dir.resolve("cache"))
                        .withEnvironment(Map.of("AWS_EC2_METADATA_DISABLED", "true")),
                Clock.system());
        artifacts = new ServiceArtifactFetcher(storage, store, namespace -> InferenceServiceConfig.defaults());
    }

    @AfterEach
    void stop() {
        storage.close();
        store.close();
        server.stop(0);
    }

    private void apply(String plural, String name, String rest) throws Exception {
        ObjectNode tree = (ObjectNode) JSON.readTree(rest.replace(
                "ENDPOINT", "http://127.0.0.1:" + server.getAddress().getPort()));
        tree.withObject("/metadata").put("name", name).put("namespace", "team");
        store.create(new ResourceStore.Type("", plural), tree);
    }

    private static String secret(String id) {
        return "{\"metadata\":{\"annotations\":{\"serving.kserve.io/s3-endpoint\":\"ENDPOINT\"}},"
                + "\"stringData\":{\"AWS_ACCESS_KEY_ID\":\"" + id + "\",\"AWS_SECRET_ACCESS_KEY\":\"s\"}}";
    }

    private String put(@Nullable String key, @Nullable String account, Map<String, String> parameters)
            throws Exception {
        PayloadOrigin origin =
                new PayloadOrigin("team", "iris", "predictor", "iris-predictor-00001", "", "x", Map.of());
        ObjectStore sink =
                artifacts.open("s3://logs/here", new PayloadSettings.Storage("", key, account, parameters), origin);
        sink.put("a/1-request.json", "{}".getBytes(StandardCharsets.UTF_8));
        Put last = puts.get(puts.size() - 1);
        assertThat(last.path()).isEqualTo("PUT /logs/here/a/1-request.json");
        assertThat(last.body()).isEqualTo("{}");
        return last.authorization();
    }

    @Test
    void theKeyIsAnEntryOrASecretElseTheAccountsCount() throws Exception {
        apply(
                "secrets",
                "storage-config",
                "{\"stringData\":{\"loggerS3\":\"{\\\"type\\\":\\\"s3\\\",\\\"endpoint_url\\\":\\\"ENDPOINT\\\","
                        + "\\\"access_key_id\\\":\\\"ENTRY\\\",\\\"secret_access_key\\\":\\\"s\\\"}\"}}");
        apply("secrets", "logger-secret", secret("SECRET"));
        apply("secrets", "of-account", secret("ACCOUNT"));
        apply("secrets", "of-default", secret("DEFAULT"));
        apply("serviceaccounts", "logger-sa", "{\"secrets\":[{\"name\":\"of-account\"}]}");
        apply("serviceaccounts", "default", "{\"secrets\":[{\"name\":\"of-default\"}]}");
        assertThat(put("loggerS3", "logger-sa", Map.of("region", "eu-west-1")))
                .contains("Credential=ENTRY/", "/eu-west-1/s3/");
        assertThat(put("logger-secret", "logger-sa", Map.of("type", "s3"))).contains("Credential=SECRET/");
        assertThat(put("neither", "logger-sa", Map.of())).contains("Credential=ACCOUNT/");
        assertThat(put(null, "logger-sa", Map.of())).contains("Credential=ACCOUNT/");
        assertThat(put(null, null, Map.of())).contains("Credential=DEFAULT/");
        assertThatThrownBy(() -> put("neither", null, Map.of()))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("'neither'");
        assertThatThrownBy(() -> put(null, null, Map.of("regoin", "eu")))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("regoin");
    }

    @Test
    void aSecretThatIsAddedLaterIsUsed() throws Exception {
        assertThatThrownBy(() -> put("logger-secret", null, Map.of())).isInstanceOf(ServingException.class);
        apply("secrets", "logger-secret", secret("LATER"));
        assertThat(put("logger-secret", null, Map.of())).contains("Credential=LATER/");
    }
}
