// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.http;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.storage.Given;
import io.nereid.storage.Storage;
import io.nereid.storage.object.TestServer;
import io.nereid.storage.request.StorageLease;
import io.nereid.storage.request.StorageOptions;
import java.net.Proxy;
import java.net.ProxySelector;
import java.net.URI;
import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The proxies of the environment. */
class EnvironmentProxySelectorTest {
    @TempDir
    Path directory;

    private static String of(Map<String, String> environment, String uri) {
        ProxySelector proxies = EnvironmentProxySelector.of(environment);
        if (proxies == null) {
            return "machine";
        }
        Proxy proxy = proxies.select(URI.create(uri)).get(0);
        return proxy.type() == Proxy.Type.DIRECT
                ? "direct"
                : Objects.toString(proxy.address()).replaceAll("/<unresolved>", "");
    }

    @Test
    void eachSchemeHasItsProxyAndSomeHostsHaveNone() {
        Map<String, String> both = Map.of(
                "HTTPS_PROXY",
                "http://secure:3128",
                "http_proxy",
                "plain:8080",
                "NO_PROXY",
                ".corp, 10.0.0.1,minio:9000");
        assertThat(of(both, "https://bucket.s3.amazonaws.com/x")).isEqualTo("secure:3128");
        assertThat(of(both, "http://models/x")).isEqualTo("plain:8080");
        assertThat(of(both, "https://a.corp/x")).isEqualTo("direct");
        assertThat(of(both, "https://acorp/x")).isEqualTo("secure:3128");
        assertThat(of(both, "http://10.0.0.1/x")).isEqualTo("direct");
        assertThat(of(both, "http://minio:9000/x")).isEqualTo("direct");
        assertThat(of(both, "http://minio:9001/x")).isEqualTo("plain:8080");
        for (String near : new String[] {"http://127.0.0.1:1/", "http://localhost/", "http://169.254.169.254/x"}) {
            assertThat(of(both, near)).as(near).isEqualTo("direct");
        }
        assertThat(of(Map.of("ALL_PROXY", "all:1", "no_proxy", "*"), "https://x/"))
                .isEqualTo("direct");
        assertThat(of(Map.of("ALL_PROXY", "all:1"), "https://x/")).isEqualTo("all:1");
    }

    @Test
    void withoutAnyTheMachinesSettingsHold() {
        assertThat(of(Map.of(), "https://x/")).isEqualTo("machine");
        assertThat(of(Map.of("HTTPS_PROXY", "socks5://x:1"), "https://x/")).isEqualTo("machine");
        assertThat(of(Map.of("HTTPS_PROXY", "http://me:secret@x:1"), "https://x/"))
                .isEqualTo("machine");
        assertThat(of(Map.of("HTTP_PROXY", "p:1"), "https://x/")).isEqualTo("direct");
    }

    @Test
    void aFetchGoesThroughTheProxy() throws Exception {
        try (TestServer proxy = new TestServer()) {
            proxy.put("/m.bin", "through the proxy");
            StorageOptions options =
                    Given.options(directory).withEnvironment(Map.of("http_proxy", "http://127.0.0.1:" + proxy.port()));
            try (Storage storage = new Storage(options, io.nereid.base.Clock.system());
                    StorageLease stored = Given.fetch(storage, "http://models.invalid/m.bin")) {
                assertThat(Given.files(stored.path())).containsValue("through the proxy");
            }
        }
    }
}
