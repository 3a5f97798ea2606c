// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ServingException;
import io.nereid.storage.request.StorageCredentials;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CredentialsTest {
    private static StorageCredentials.Secret secret(Map<String, String> data, String... annotations) {
        Map<String, String> all = new HashMap<>();
        for (int i = 0; i < annotations.length; i += 2) {
            all.put("serving.kserve.io/" + annotations[i], annotations[i + 1]);
        }
        return new StorageCredentials.Secret("secret", data, all);
    }

    private static Map<String, String> settings(StorageCredentials.Secret... secrets) {
        return StorageCredentials.settings(List.of(secrets), Map.of());
    }

    @Test
    void anS3SecretGivesKeysAndWhatItsAnnotationsSay() {
        assertThat(settings(secret(
                        Map.of("AWS_ACCESS_KEY_ID", "id", "AWS_SECRET_ACCESS_KEY", "key", "AWS_DEFAULT_REGION", "data"),
                        "s3-endpoint",
                        "minio:9000",
                        "s3-usehttps",
                        "0",
                        "s3-region",
                        "annotation",
                        "s3-verifyssl",
                        "0",
                        "s3-usevirtualbucket",
                        "true",
                        "s3-useaccelerate",
                        "false",
                        "s3-useanoncredential",
                        "false",
                        "s3-cabundle",
                        "/ca.crt")))
                .isEqualTo(Map.ofEntries(
                        Map.entry("AWS_ACCESS_KEY_ID", "id"),
                        Map.entry("AWS_SECRET_ACCESS_KEY", "key"),
                        Map.entry("S3_ENDPOINT", "minio:9000"),
                        Map.entry("AWS_ENDPOINT_URL", "http://minio:9000"),
                        Map.entry("S3_USE_HTTPS", "0"),
                        Map.entry("AWS_DEFAULT_REGION", "annotation"),
                        Map.entry("S3_VERIFY_SSL", "0"),
                        Map.entry("S3_USER_VIRTUAL_BUCKET", "true"),
                        Map.entry("S3_USE_ACCELERATE", "false"),
                        Map.entry("awsAnonymousCredential", "false"),
                        Map.entry("AWS_CA_BUNDLE", "/ca.crt")));
    }

    @Test
    void otherSecretsAreKnownByTheirKeys() {
        assertThat(settings(secret(Map.of("awsAccessKeyID", "i", "awsSecretAccessKey", "k"))))
                .isEqualTo(Map.of("AWS_ACCESS_KEY_ID", "i", "AWS_SECRET_ACCESS_KEY", "k"));
        assertThat(settings(secret(Map.of("gcloud-application-credentials.json", "{}"))))
                .isEqualTo(Map.of("GOOGLE_APPLICATION_CREDENTIALS", "{}"));
        assertThat(settings(secret(Map.of("AZ_CLIENT_ID", "c", "AZ_TENANT_ID", "t", "AZ_CLIENT_SECRET", "s"))))
                .isEqualTo(Map.of("AZ_CLIENT_ID", "c", "AZ_TENANT_ID", "t", "AZ_CLIENT_SECRET", "s"));
        assertThat(settings(secret(Map.of("AZURE_STORAGE_ACCESS_KEY", "a"))))
                .isEqualTo(Map.of("AZURE_STORAGE_ACCESS_KEY", "a"));
        assertThat(settings(secret(Map.of("https-host", "models.org", "headers", "{\"A\":\"b\"}"))))
                .isEqualTo(Map.of("models.org-headers", "{\"A\":\"b\"}"));
        assertThat(settings(secret(Map.of("HDFS_NAMENODE", "http://n", "HDFS_ROOTPATH", "/r", "OTHER", "x"))))
                .isEqualTo(Map.of("HDFS_NAMENODE", "http://n", "HDFS_ROOTPATH", "/r"));
        assertThat(settings(secret(Map.of("HF_TOKEN", "hf")), secret(Map.of("unknown", "x"))))
                .isEqualTo(Map.of("HF_TOKEN", "hf"));
        assertThat(StorageCredentials.settings(List.of(), Map.of("eks.amazonaws.com/role-arn", "arn:role")))
                .isEqualTo(Map.of("AWS_ROLE_ARN", "arn:role"));
    }

    @Test
    void secretsAreNeverShown() {
        assertThat(secret(Map.of("HF_TOKEN", "hf_hidden")).toString())
                .contains("HF_TOKEN")
                .doesNotContain("hf_hidden");
        assertThat(new StorageCredentials.Location("s3://b/p", Map.of("AWS_SECRET_ACCESS_KEY", "hidden")).toString())
                .doesNotContain("hidden");
    }

    @Test
    void aStorageEntryIsFoundByKeyByTypeOrByDefault() {
        String entry = "{\"type\":\"s3\",\"access_key_id\":\"i\",\"secret_access_key\":\"k\","
                + "\"endpoint_url\":\"http://e\",\"bucket\":\"of-entry\",\"region\":\"r\"}";
        var secret = secret(Map.of("mine", entry, "default", entry, "default_s3", entry, "bad", "no json"));
        for (StorageCredentials.Location location : List.of(
                StorageCredentials.storageSpec(secret, "mine", "a/model", Map.of()),
                StorageCredentials.storageSpec(secret, null, "/a/model", Map.of()),
                StorageCredentials.storageSpec(secret, null, "<scheme-placeholder>://a/model", Map.of("type", "s3")))) {
            assertThat(location.uri()).isEqualTo("s3://of-entry/a/model");
            assertThat(location.credentials())
                    .isEqualTo(Map.of(
                            "AWS_ACCESS_KEY_ID", "i",
                            "AWS_SECRET_ACCESS_KEY", "k",
                            "AWS_ENDPOINT_URL", "http://e",
                            "AWS_DEFAULT_REGION", "r"));
        }
        var overridden = StorageCredentials.storageSpec(secret, "mine", "m", Map.of("bucket", "other", "region", "q"));
        assertThat(overridden.uri()).isEqualTo("s3://other/m");
        assertThat(overridden.credentials()).containsEntry("AWS_DEFAULT_REGION", "q");
        assertThatThrownBy(() -> StorageCredentials.storageSpec(secret, "none", "m", Map.of()))
                .hasMessage("specified storage key none not found in storage secret secret");
        assertThatThrownBy(() -> StorageCredentials.storageSpec(secret, "bad", "m", Map.of()))
                .hasMessageStartingWith("invalid json encountered in key bad of storage secret secret");
        assertThatThrownBy(() -> StorageCredentials.storageSpec(null, null, "m", Map.of()))
                .hasMessage("unable to determine storage type");
        assertThatThrownBy(() -> StorageCredentials.storageSpec(null, null, "m", Map.of("type", "ftp")))
                .hasMessage("storage type must be one of [s3, hdfs, webhdfs]. storage type [ftp] is not supported");
        assertThatThrownBy(() -> StorageCredentials.storageSpec(null, null, "m", Map.of("type", "s3")))
                .hasMessage("format [s3] requires a bucket but one wasn't found in storage data or parameters");
    }

    @Test
    void filesOfAnHdfsEntryAreDecoded() {
        String entry = "{\"type\":\"webhdfs\",\"HDFS_NAMENODE\":\"http://n:9870\",\"TLS_CA\":\""
                + Base64.getEncoder().encodeToString("-----BEGIN X".getBytes(StandardCharsets.UTF_8)) + "\"}";
        var location = StorageCredentials.storageSpec(
                secret(Map.of("default_webhdfs", entry)), null, "a/b", Map.of("type", "webhdfs"));
        assertThat(location.uri()).isEqualTo("webhdfs://a/b");
        assertThat(location.credentials())
                .isEqualTo(Map.of("HDFS_NAMENODE", "http://n:9870", "TLS_CA", "-----BEGIN X"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "s3://b/p",
                "s3://b",
                "gs://b/p",
                "/abs/path",
                "file:///abs",
                "pvc://claim/p",
                "pvc://claim",
                "http://h/f.zip",
                "https://a.blob.core.windows.net/c/p",
                "https://a.z1.blob.storage.azure.net/c/p",
                "https://a.file.core.windows.net/s/d",
                "https://a.z1.file.storage.azure.net/s",
                "hdfs://a/b",
                "webhdfs://a",
                "hf://o/m",
                "hf://o/m:rev",
                "oci://r.io/m:t",
                "oci+fetch://r.io/m"
            })
    void knownUrisAreSupported(String uri) {
        assertThat(Storage.supports(uri)).isTrue();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "relative/path",
                "ftp://h/f",
                "s3:///x",
                "s3://",
                "file://relative",
                "hf://one",
                "hf://a/b/c",
                "pvc://",
                "http://h",
                "http:///x",
                "https://h/repo.git",
                "https://a.file.core.windows.net/",
                "modelscope://o/m",
                "gs://",
                "oci://",
                "abfs://x/y"
            })
    void otherUrisAreRefusedWithWhatIsSupported(String uri) {
        assertThat(Storage.supports(uri)).isFalse();
        assertThatThrownBy(() -> Storage.check(uri))
                .isInstanceOfSatisfying(
                        ServingException.class,
                        e -> assertThat(e.describe())
                                .contains("s3://")
                                .contains("hf://")
                                .contains("oci://"));
    }
}
