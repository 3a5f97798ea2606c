// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.fetch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FetchEnvironmentTest {
    private static Map<String, String> settings(Map<String, String> environment) {
        return FetchEnvironment.of(environment).locate("s3://zoo/iris").settings();
    }

    @Test
    void variablesThatAShellDropsComeFromTheLauncher() {
        String all = "HOME=/old\0files.example.net-headers={\"Authorization\": \"Bearer x\"}\nX: y\0";
        String passed = Base64.getMimeEncoder().encodeToString(all.getBytes(StandardCharsets.UTF_8));
        assertThat(settings(Map.of("HOME", "/new", FetchEnvironment.LAUNCHER, passed)))
                .containsOnly(
                        Map.entry("HOME", "/new"),
                        Map.entry("files.example.net-headers", "{\"Authorization\": \"Bearer x\"}\nX: y"));
        assertThatThrownBy(() -> settings(Map.of(FetchEnvironment.LAUNCHER, "A")))
                .hasMessageContaining(FetchEnvironment.LAUNCHER);
    }

    @Test
    void theMountedSecretOfHdfsIsRead(@TempDir Path secret) throws Exception {
        Files.writeString(secret.resolve("HDFS_NAMENODE"), "https://nn:9871\n");
        Files.writeString(secret.resolve("HEADERS"), "{\"X\": \"y\"}");
        Files.writeString(secret.resolve("TLS_CA"), "-----BEGIN CERTIFICATE-----");
        Files.writeString(secret.resolve("OTHER"), "no");
        assertThat(settings(Map.of("HDFS_SECRET_DIR", secret.toString())))
                .containsEntry("HDFS_NAMENODE", "https://nn:9871")
                .containsEntry("HEADERS", "{\"X\": \"y\"}")
                .containsEntry("TLS_CA", secret.resolve("TLS_CA").toString())
                .doesNotContainKey("OTHER");
    }

    @Test
    void theMountedBundleOfS3IsTheOneOfTheCluster() {
        assertThat(settings(Map.of(
                        "AWS_CA_BUNDLE_CONFIGMAP", "own", "CA_BUNDLE_VOLUME_MOUNT_POINT", "/etc/ssl/custom-certs")))
                .containsOnly(
                        Map.entry("CA_BUNDLE_CONFIGMAP_NAME", "own"),
                        Map.entry("CA_BUNDLE_VOLUME_MOUNT_POINT", "/etc/ssl/custom-certs"));
        assertThat(settings(Map.of(
                        "STORAGE_CONFIG", "{\"type\": \"s3\", \"cabundle_configmap\": \"own\"}",
                        "CA_BUNDLE_VOLUME_MOUNT_POINT", "/etc/ssl/custom-certs")))
                .containsEntry("CA_BUNDLE_CONFIGMAP_NAME", "own")
                .doesNotContainKey("AWS_CA_BUNDLE_CONFIGMAP");
    }

    @Test
    void encryptedModelsAreRefused() {
        assertThatThrownBy(() -> FetchEnvironment.of(Map.of("CONFIDENTIAL_ENABLED", "true")))
                .hasMessageContaining("CONFIDENTIAL_ENABLED is 'true': encrypted models are not supported");
        assertThat(settings(Map.of("CONFIDENTIAL_ENABLED", "false"))).hasSize(1);
    }

    @Test
    void theMountedPullSecretIsForRegistries(@TempDir Path secret) throws Exception {
        Path file = secret.resolve("config.json");
        assertThat(settings(Map.of("KSERVE_OCI_DOCKER_CONFIG", file.toString())))
                .hasSize(1);
        Files.writeString(file, "{}");
        assertThat(settings(Map.of("KSERVE_OCI_DOCKER_CONFIG", file.toString())))
                .containsEntry(".dockerconfigjson", file.toString());
    }

    @Test
    void secretsAreNotShown() {
        FetchEnvironment environment = FetchEnvironment.of(Map.of("HF_TOKEN", "hf_secret"));
        assertThat(environment + " " + environment.locate("hf://a/b")).doesNotContain("hf_secret");
        assertThat(environment.inPod()).isFalse();
    }

    @Test
    void anEntryOfHdfsHasItsFilesInBase64() {
        String pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        String entry = "{\"type\": \"webhdfs\", \"HDFS_NAMENODE\": \"https://nn:9871\", \"TLS_CA\": \""
                + Base64.getEncoder().encodeToString(pem.getBytes(StandardCharsets.UTF_8)) + "\"}";
        assertThat(FetchEnvironment.of(Map.of("STORAGE_CONFIG", entry)).locate("<scheme-placeholder>://iris/v1"))
                .satisfies(located -> {
                    assertThat(located.uri()).isEqualTo("webhdfs://iris/v1");
                    assertThat(located.settings())
                            .containsEntry("HDFS_NAMENODE", "https://nn:9871")
                            .containsEntry("TLS_CA", pem);
                });
    }
}
