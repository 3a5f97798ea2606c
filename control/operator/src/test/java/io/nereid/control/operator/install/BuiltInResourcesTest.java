// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.install;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.kubernetes.crd.CustomResourceDefinitions;
import io.nereid.control.kubernetes.manifest.ManifestOptions;
import io.nereid.control.kubernetes.manifest.ManifestOptions.Part;
import io.nereid.control.kubernetes.manifest.OperatorManifests;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.testing.kubernetes.TestCluster;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** On a real API server. */
@Execution(ExecutionMode.CONCURRENT)
class BuiltInResourcesTest {
    @TempDir
    Path directory;

    private Path write(String folder, String image, String... watched) throws Exception {
        ManifestOptions options = new ManifestOptions(
                "nereid",
                image,
                List.of(watched),
                1,
                1,
                ManifestOptions.Gateways.DEFAULT,
                "",
                "example.com",
                "",
                Set.of(Part.RUNTIMES));
        Path into = Files.createDirectories(directory.resolve(folder));
        for (ObjectNode object : OperatorManifests.of(options, JsonNode::toPrettyString)) {
            if (object.path("metadata").path("name").asText().equals(OperatorManifests.BUILT_IN)) {
                for (var entry : object.path("data").properties()) {
                    Files.writeString(
                            into.resolve(entry.getKey()), entry.getValue().asText());
                }
            }
        }
        return into;
    }

    @Test
    void theyAreCreatedBroughtUpToDateAndLeftToThoseWhoChangeThem() throws Exception {
        String why = TestCluster.unavailable().orElse("");
        assumeTrue(why.isEmpty(), why);
        try (TestCluster cluster = TestCluster.start(directory.resolve("cluster"))) {
            cluster.define(CustomResourceDefinitions.all().stream()
                    .map(ObjectNode::toString)
                    .toList());
            ClusterClient client = new ClusterClient(cluster.client());

            new BuiltInResources(client, write("first", "nereid:1"), Set.of()).apply();
            assertThat(cluster.kubectl("get", "clusterservingruntimes", "-o", "name"))
                    .contains("kserve-sklearnserver", "kserve-tritonserver");
            String image = "jsonpath={.spec.container.image}";
            assertThat(cluster.kubectl("get", "csc", "default", "-o", image)).isEqualTo("nereid:1");

            cluster.kubectl(
                    "patch",
                    "clusterservingruntime",
                    "kserve-sklearnserver",
                    "--type=merge",
                    "-p",
                    "{\"spec\":{\"supportedModelFormats\":[{\"name\":\"own\"}]}}");
            cluster.kubectl("delete", "clusterservingruntime", "kserve-tritonserver");
            new BuiltInResources(client, write("second", "nereid:2"), Set.of()).apply();
            assertThat(cluster.kubectl("get", "csc", "default", "-o", image)).isEqualTo("nereid:2");
            assertThat(cluster.kubectl("get", "clusterservingruntimes", "-o", "name"))
                    .contains("kserve-tritonserver");
            assertThat(cluster.kubectl(
                            "get",
                            "clusterservingruntime",
                            "kserve-sklearnserver",
                            "-o",
                            "jsonpath={.spec.supportedModelFormats[*].name}"))
                    .isEqualTo("own");

            cluster.kubectl("create", "namespace", "team");
            new BuiltInResources(client, write("third", "nereid:1", "team"), Set.of("team")).apply();
            assertThat(cluster.kubectl("get", "servingruntimes", "-n", "team", "-o", "name"))
                    .contains("kserve-sklearnserver");
        }
    }

    @Test
    void aMissingDirectoryIsNamed() {
        assertThatThrownBy(() -> new BuiltInResources(null, directory.resolve("none"), Set.of()).apply())
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("none");
    }
}
