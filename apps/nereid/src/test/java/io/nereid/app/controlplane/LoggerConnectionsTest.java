// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.controlplane;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.store.FileResourceStore;
import io.nereid.payload.PayloadSettings;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.proxy.PooledUpstreamClient;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The certificates that payload loggers trust. */
@SuppressWarnings("NullAway.Init") // set before each test
class LoggerConnectionsTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    @TempDir
    private Path dir;

    private final PooledUpstreamClient common = new PooledUpstreamClient(PooledUpstreamClient.Options.DEFAULT);
    private ResourceStore store;
    private String section = "{}";
    private LoggerConnections upstreams;

    @BeforeEach
    void start() {
        store = FileResourceStore.open(dir, Clock.system());
        upstreams = new LoggerConnections(common, PooledUpstreamClient.Options.DEFAULT, store, namespace -> config());
    }

    @AfterEach
    void stop() {
        upstreams.close();
        common.close();
        store.close();
    }

    private InferenceServiceConfig config() {
        return InferenceServiceConfig.defaults().with(tree("{\"logger\": " + section + "}"));
    }

    private static ObjectNode tree(String json) {
        try {
            return (ObjectNode) JSON.readTree(json);
        } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
            throw new AssertionError(e);
        }
    }

    private UpstreamClient of(String url) {
        JsonNode nothing = JSON.createObjectNode();
        return upstreams.of("default", PayloadSettings.read(url, "all", nothing, Map.of()));
    }

    @Test
    void withoutSettingsAndWithoutEncryptionTheConnectionsAreTheCommonOnes() {
        assertThat(of("https://sink")).isSameAs(common);
        section = "{\"tlsSkipVerify\": true, \"caBundle\": \"none\"}";
        assertThat(of("http://sink")).isSameAs(common);
        assertThat(of("file:///logs")).isSameAs(common);
    }

    @Test
    void receiversThatVerifyNoCertificateShareConnectionsOfTheirOwn() {
        section = "{\"tlsSkipVerify\": true}";
        UpstreamClient own = of("https://sink");
        assertThat(own).isNotSameAs(common);
        assertThat(of("https://another")).isSameAs(own);
    }

    @Test
    void missingCertificatesAreReported() {
        section = "{\"caBundle\": \"authorities\"}";
        assertThatThrownBy(() -> of("https://sink"))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("entry 'service-ca.crt' of ConfigMap 'authorities'");
        store.create(new ResourceStore.Type("", "configmaps"), tree("""
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "authorities", "namespace": "default"},
             "data": {"service-ca.crt": "none"}}\
            """));
        assertThatThrownBy(() -> of("https://sink")).hasMessageContaining("no certificate");
    }
}
