// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.fetch;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpServer;
import io.nereid.app.Main;
import io.nereid.base.Threads;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

class FetchCommandTest {
    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();
    private final Map<String, byte[]> objects = new ConcurrentHashMap<>();
    private final List<String> credentials = new CopyOnWriteArrayList<>();
    private final ExecutorService threads = Threads.pool("test-server", 4);
    private HttpServer server;

    @TempDir
    Path directory;

    @BeforeEach
    void start() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 64);
        server.setExecutor(threads);
        server.createContext("/", exchange -> {
            try (exchange) {
                String authorization = exchange.getRequestHeaders().getFirst("Authorization");
                credentials.add(String.valueOf(authorization));
                String path = exchange.getRequestURI().getPath();
                String query = String.valueOf(exchange.getRequestURI().getQuery());
                byte[] body = query.contains("list-type=2") ? listing(path, query) : objects.get(path);
                if (body == null) {
                    exchange.sendResponseHeaders(404, -1);
                    return;
                }
                exchange.getResponseHeaders().set("Content-Type", "application/octet-stream");
                exchange.getResponseHeaders().set("ETag", "\"e" + body.length + "\"");
                if (exchange.getRequestMethod().equals("HEAD")) {
                    exchange.getResponseHeaders().set("Content-Length", String.valueOf(body.length));
                    exchange.sendResponseHeaders(200, -1);
                    return;
                }
                exchange.sendResponseHeaders(200, body.length);
                exchange.getResponseBody().write(body);
            }
        });
        server.start();
    }

    @AfterEach
    void stop() {
        server.stop(0);
        threads.shutdownNow();
    }

    private byte[] listing(String bucket, String query) {
        String prefix = query.replaceAll(".*prefix=([^&]*).*", "$1");
        StringBuilder xml = new StringBuilder("<ListBucketResult>");
        String root = bucket.endsWith("/") ? bucket : bucket + "/";
        objects.forEach((path, body) -> {
            if (path.startsWith(root + prefix)) {
                xml.append("<Contents><Key>")
                        .append(path.substring(root.length()))
                        .append("</Key><Size>")
                        .append(body.length)
                        .append("</Size><ETag>\"e")
                        .append(body.length)
                        .append("\"</ETag></Contents>");
            }
        });
        return xml.append("</ListBucketResult>").toString().getBytes(StandardCharsets.UTF_8);
    }

    private void put(String path, String content) {
        objects.put(path, content.getBytes(StandardCharsets.UTF_8));
    }

    private String url() {
        return "http://127.0.0.1:" + server.getAddress().getPort();
    }

    private int run(Map<String, String> environment, String... arguments) {
        FetchCommand command = new FetchCommand();
        CommandLine line =
                new CommandLine(command).setOut(new PrintWriter(out, true)).setErr(new PrintWriter(err, true));
        line.parseArgs(arguments);
        return command.run(environment, false);
    }

    private int main(String... arguments) {
        return Main.commandLine()
                .setOut(new PrintWriter(out, true))
                .setErr(new PrintWriter(err, true))
                .execute(arguments);
    }

    private Path target(String name) {
        return directory.resolve(name);
    }

    @Test
    void pairsAreFetchedInOrderAndNotTwice() {
        put("/a.bin", "aa");
        put("/b.bin", "bbb");
        String[] arguments = {
            url() + "/a.bin", target("models").toString(),
            url() + "/b.bin", target("models/b").toString()
        };
        assertThat(run(Map.of(), arguments)).isZero();
        assertThat(target("models/a.bin")).hasContent("aa");
        assertThat(target("models/b/b.bin")).hasContent("bbb");
        assertThat(out.toString().lines())
                .hasSize(4)
                .element(0)
                .isEqualTo("fetching " + url() + "/a.bin into " + target("models"));
        assertThat(out.toString()).containsSubsequence("/a.bin is in", "1 file, 0.0 MB, in", "/b.bin is in");
        out.getBuffer().setLength(0);
        assertThat(run(Map.of(), arguments)).isZero();
        assertThat(out.toString()).contains("/a.bin is in " + target("models") + " already: 1 file");
        assertThat(err.toString()).isEmpty();
    }

    @Test
    void anotherModelInTheDirectoryTakesThePlaceOfTheOldOne() {
        put("/a.bin", "aa");
        put("/b.bin", "bbb");
        run(Map.of(), url() + "/a.bin", target("models").toString());
        assertThat(run(Map.of(), url() + "/b.bin", target("models").toString())).isZero();
        assertThat(target("models/a.bin")).doesNotExist();
        assertThat(target("models/b.bin")).exists();
    }

    @Test
    void storageUrisAreReadAsAnInferenceServiceHasThem() throws Exception {
        put("/a.bin", "aa");
        String json = "[{\"uri\": \"" + url() + "/a.bin\", \"mountPath\": \"" + target("x") + "\"}]";
        assertThat(run(Map.of(), "--storage-uris", json)).isZero();
        assertThat(target("x/a.bin")).hasContent("aa");
        Path file = Files.writeString(
                directory.resolve("uris.json"), "{\"storageUris\": " + json.replace("/x", "/y") + "}");
        assertThat(run(Map.of(), "--storage-uris", file.toString())).isZero();
        assertThat(target("y/a.bin")).hasContent("aa");
    }

    @Test
    void theEnvironmentOfKServesInitializerIsUnderstood() {
        put("/zoo/iris/model.joblib", "weights");
        put("/zoo/iris-2/model.joblib", "other");
        // As the golden of a service account with an S3 secret has it.
        Map<String, String> environment = Map.of(
                "AWS_ACCESS_KEY_ID", "K",
                "AWS_SECRET_ACCESS_KEY", "S",
                "S3_USE_HTTPS", "0",
                "S3_ENDPOINT", url().substring(7),
                "AWS_ENDPOINT_URL", url(),
                "S3_VERIFY_SSL", "0",
                "awsAnonymousCredential", "false",
                "AWS_DEFAULT_REGION", "us-east-2",
                "HF_HUB_ENABLE_HF_TRANSFER", "1");
        assertThat(run(environment, "s3://zoo/iris", target("s3").toString())).isZero();
        assertThat(target("s3/model.joblib")).hasContent("weights");
        assertThat(credentials).allMatch(a -> a.contains("Credential=K/") && a.contains("/us-east-2/s3/"));
    }

    @Test
    void storageConfigAndItsOverridesAreUnderstood() {
        put("/zoo/iris/model.joblib", "weights");
        Map<String, String> environment = new HashMap<>();
        environment.put(
                "STORAGE_CONFIG",
                "{\"type\": \"s3\", \"access_key_id\": \"FROM-ENTRY\", \"secret_access_key\": \"S\", \"endpoint_url\":"
                        + " \"http://127.0.0.1:1\", \"default_bucket\": \"zoo\", \"region\": \"eu\"}");
        environment.put("STORAGE_OVERRIDE_CONFIG", "{\"endpoint_url\": \"" + url() + "\"}");
        assertThat(run(environment, "s3://zoo/iris", target("a").toString())).isZero();
        assertThat(credentials).allMatch(a -> a.contains("Credential=FROM-ENTRY/") && a.contains("/eu/s3/"));
        environment.put("STORAGE_OVERRIDE_CONFIG", "{\"endpoint_url\": \"" + url() + "\", \"bucket\": \"zoo\"}");
        assertThat(run(environment, "<scheme-placeholder>://iris", target("b").toString()))
                .isZero();
        assertThat(target("b/model.joblib")).hasContent("weights");
        environment.put("STORAGE_CONFIG", "{\"type\": \"ftp\"}");
        assertThat(run(environment, "s3://zoo/iris", target("c").toString())).isEqualTo(1);
        assertThat(err.toString()).contains("storage type [ftp] is not supported");
        environment.put("STORAGE_CONFIG", "{");
        assertThat(run(environment, "s3://zoo/iris", target("c").toString())).isEqualTo(1);
        assertThat(err.toString()).contains("STORAGE_CONFIG is not valid JSON");
    }

    @Test
    void aFailureIsToldShortlyInTheLogAndInTheTerminationLog() throws Exception {
        Path log = directory.resolve("termination-log");
        assertThat(run(
                        Map.of(
                                "AWS_ACCESS_KEY_ID",
                                "K",
                                "AWS_SECRET_ACCESS_KEY",
                                "secret-key",
                                "AWS_ENDPOINT_URL",
                                url()),
                        "--termination-log",
                        log.toString(),
                        "s3://zoo/none",
                        target("x").toString()))
                .isEqualTo(1);
        assertThat(err.toString().lines()).hasSizeLessThanOrEqualTo(2);
        assertThat(err.toString())
                .startsWith("nereid: ")
                .contains("s3://zoo/none")
                .doesNotContain("secret-key");
        assertThat(Files.readString(log)).startsWith("Failed to fetch model. No model found in s3://zoo/none.");
    }

    @Test
    void aWrongCommandLineIsExitCodeTwo() {
        assertThat(main("fetch")).isEqualTo(2);
        assertThat(err.toString()).contains("no source is given");
        assertThat(main("fetch", "s3://a/b")).isEqualTo(2);
        assertThat(err.toString()).contains("'s3://a/b' has no directory beside it");
        assertThat(main("fetch", "s3://a/b", "/")).isEqualTo(2);
        assertThat(err.toString()).contains("the root of the file system");
        assertThat(main("fetch", "--storage-allow", "models", "s3://a/b", "/tmp/x"))
                .isEqualTo(2);
        assertThat(err.toString()).contains("storage pattern 'models' is not valid");
        assertThat(main("fetch", "--storage-uris", "[{\"url\": \"s3://a/b\"}]")).isEqualTo(2);
        assertThat(err.toString()).contains("unknown field 'url'");
        assertThat(main("fetch", "--storage-uris", "[{\"uri\": \"s3://a/b\", \"mountPath\": \"x\"}]"))
                .isEqualTo(2);
        assertThat(err.toString()).contains("has the mountPath 'x'");
        assertThat(main("fetch", "--no-such", "s3://a/b", "/tmp/x")).isEqualTo(2);
    }

    @Test
    void kindsThatAreNotSupportedAreRefusedByName() {
        Map<String, String> refused = Map.of(
                "modelscope://a/b", "ModelScope is not supported",
                "https://example.com/a.git", "git repositories are not supported",
                "ftp://example.com/a", "the scheme ftp:// is not supported",
                "models/iris", "it has no scheme");
        refused.forEach((uri, why) -> {
            assertThat(run(Map.of(), uri, target("x").toString())).isEqualTo(1);
            assertThat(err.toString()).contains(why);
        });
    }

    @Test
    void inAPodNoAddressOfThePodOrOfMetadataIsReached() {
        put("/a.bin", "aa");
        Map<String, String> pod = Map.of("KUBERNETES_SERVICE_HOST", "10.0.0.1", "AWS_ENDPOINT_URL", url());
        assertThat(run(pod, url() + "/a.bin", target("x").toString())).isEqualTo(1);
        assertThat(err.toString()).contains("that of this machine").contains("--storage-allow=");
        assertThat(run(pod, "s3://zoo/iris", target("x").toString())).isEqualTo(1);
        assertThat(run(pod, "http://169.254.169.254/latest", target("x").toString()))
                .isEqualTo(1);
        assertThat(credentials).isEmpty();
        assertThat(run(
                        pod,
                        "--storage-allow",
                        url() + "/",
                        url() + "/a.bin",
                        target("x").toString()))
                .isZero();
        assertThat(run(
                        pod,
                        "--storage-allow",
                        "s3://models/",
                        url() + "/a.bin",
                        target("x").toString()))
                .isEqualTo(1);
        assertThat(err.toString()).contains("is not permitted (allowed: s3://models");
    }
}
