// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import io.nereid.backend.Backend;
import io.nereid.base.ApiVersion;
import io.nereid.base.Clock;
import io.nereid.observe.Observability;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.PluginJarBuilder;
import java.io.IOException;
import java.net.URISyntaxException;
import java.net.URL;
import java.net.URLClassLoader;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;

/** Builds, tests and serves the backend of {@code docs/WRITING-A-BACKEND.md} as the document describes it. */
class WritingABackendTest {
    private static final String BACKEND = "## A complete backend";
    private static final String BUILDING = "## Building it";
    private static final String TESTING = "## Testing it";
    private static final String INSTALLING = "## Installing it";

    @TempDir
    Path directory;

    private String document;
    private Path jar;

    @BeforeEach
    void build() throws Exception {
        document = Files.readString(root().resolve("docs/WRITING-A-BACKEND.md"));
        jar = new PluginJarBuilder()
                .source("com.example.ScaleBackend", block(BACKEND, "java"))
                .service(services(), block(BACKEND, "text").strip())
                .apiVersion(first("<Nereid-Api-Version>(.*?)</Nereid-Api-Version>", block(BUILDING, "xml")))
                .classPath(api())
                .build(directory.resolve("scale-backend-1.0.jar"));
    }

    private static Path root() {
        Path here = Path.of("").toAbsolutePath();
        return Files.isDirectory(here.resolve("docs"))
                ? here
                : here.resolve("../..").normalize();
    }

    /** The modules that the document names, and no other. */
    private static List<Path> api() throws URISyntaxException {
        List<Path> modules = new ArrayList<>();
        for (Class<?> type :
                List.of(Backend.class, Clock.class, Tensor.class, Observability.class, ModelConfig.class)) {
            modules.add(Path.of(
                    type.getProtectionDomain().getCodeSource().getLocation().toURI()));
        }
        return modules;
    }

    /** The first block of a language below a heading. */
    private String block(String heading, String language) {
        int from = document.indexOf(heading + "\n");
        assertThat(from).as(heading).isNotNegative();
        int to = document.indexOf("\n## ", from + 1);
        String section = document.substring(from, to < 0 ? document.length() : to);
        Matcher block = Pattern.compile("```(\\w*)\n(.*?)```", Pattern.DOTALL).matcher(section);
        while (block.find()) {
            if (block.group(1).equals(language)) {
                return block.group(2);
            }
        }
        throw new AssertionError(heading + " has no block of " + language);
    }

    private static String first(String pattern, String text) {
        Matcher found = Pattern.compile(pattern).matcher(text);
        assertThat(found.find()).as("%s in %s", pattern, text).isTrue();
        return found.group(1);
    }

    private String services() {
        return first("META-INF/services/([\\w.]+)`", document);
    }

    @Test
    void theBuildFileNamesThisVersionAndModulesThatExist() throws IOException {
        String build = block(BUILDING, "xml");
        String pom = Files.readString(root().resolve("pom.xml"));
        String version = first("<artifactId>nereid</artifactId>\\s*<version>(.*?)</version>", pom);
        assertThat(build).contains("<Nereid-Api-Version>" + ApiVersion.CURRENT + "</Nereid-Api-Version>");
        Matcher dependency = Pattern.compile("<groupId>io.nereid</groupId>\\s*<artifactId>(.*?)</artifactId>"
                        + "\\s*<version>(.*?)</version>")
                .matcher(build);
        List<String> artifacts = new ArrayList<>();
        while (dependency.find()) {
            artifacts.add(dependency.group(1));
            assertThat(dependency.group(2)).isEqualTo(version);
        }
        assertThat(artifacts).containsExactly("nereid-backend", "nereid-testkit");
        for (String artifact : artifacts) {
            assertThat(pom).contains("<artifactId>" + artifact + "</artifactId>");
        }
    }

    @Test
    void itFulfilsTheContractOfBackends() throws Exception {
        List<Path> classPath = new ArrayList<>(List.of(jar));
        Stream.of(System.getProperty("java.class.path").split(java.io.File.pathSeparator))
                .map(Path::of)
                .forEach(classPath::add);
        Path tests = new PluginJarBuilder()
                .source("com.example.ScaleBackendTest", block(TESTING, "java"))
                .classPath(classPath)
                .build(directory.resolve("scale-backend-1.0-tests.jar"));
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        try (URLClassLoader loader = new URLClassLoader(
                new URL[] {jar.toUri().toURL(), tests.toUri().toURL()},
                getClass().getClassLoader())) {
            thread.setContextClassLoader(loader);
            SummaryGeneratingListener listener = new SummaryGeneratingListener();
            LauncherFactory.create()
                    .execute(
                            LauncherDiscoveryRequestBuilder.request()
                                    .selectors(selectClass(loader.loadClass("com.example.ScaleBackendTest")))
                                    .build(),
                            listener);
            TestExecutionSummary summary = listener.getSummary();
            assertThat(summary.getFailures())
                    .extracting(f -> f.getTestIdentifier().getDisplayName() + ": " + f.getException())
                    .isEmpty();
            assertThat(summary.getTestsSucceededCount()).isGreaterThanOrEqualTo(12);
            assertThat(summary.getTestsAbortedCount()).isZero();
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    @Test
    void theServerLoadsItAsAPlugin() throws Exception {
        String commands = block(INSTALLING, "console");
        Path plugin = Files.createDirectories(directory.resolve("plugins/scale"));
        Files.copy(jar, plugin.resolve("scale-backend-1.0.jar"));
        Path models = directory.resolve("models");
        Path model = Files.createDirectories(models.resolve(first("echo .* > models/(.*)/model.scale", commands)));
        Files.writeString(model.resolve("model.scale"), first("echo '(.*)' >", commands) + "\n");
        try (ServerProcess server = ServerProcess.serve(
                Map.of("NEREID_PLUGIN_DIR", directory.resolve("plugins").toString()), models)) {
            HttpResponse<String> response = HttpClient.newHttpClient()
                    .send(
                            HttpRequest.newBuilder(server.uri(first("curl localhost:8080(\\S+)", commands)))
                                    .POST(HttpRequest.BodyPublishers.ofString(first("-d '(.*)'", commands)))
                                    .build(),
                            HttpResponse.BodyHandlers.ofString());
            assertThat(response.body()).contains("\"data\":[2.5,5.0,10.0]");
            assertThat(response.statusCode()).isEqualTo(200);
            assertThat(server.output()).noneMatch(line -> line.contains("does not say for which version"));
        }
    }
}
