// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.control;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.Main;
import io.nereid.app.text.YamlWriter;
import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.admission.Admission;
import io.nereid.control.api.admission.AdmissionContext;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.control.apiserver.ApiServer;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.core.runtime.RuntimeSelection;
import io.nereid.control.store.FileResourceStore;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.server.Server;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** The commands on resources against a control API in this process. */
@SuppressWarnings("NullAway.Init") // set before each test
class ControlCommandsTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String IRIS = """
        apiVersion: serving.kserve.io/v1beta1
        kind: InferenceService
        metadata: {name: iris}
        spec:
          predictor:
            minReplicas: 1
            model:
              modelFormat: {name: sklearn}
              storageUri: file:///models/iris
        """;

    @TempDir
    private Path dir;

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();
    private ResourceStore store;
    private ApiServer api;
    private Server server;
    private String url;

    @BeforeEach
    void start() {
        store = FileResourceStore.open(dir.resolve("store"), Clock.system());
        api = new ApiServer(
                store,
                new Admission(AdmissionContext.NONE),
                new ApiServer.Options(
                        "test",
                        Clock.system(),
                        (namespace, service, component, most) -> List.of(namespace + "/" + service + "/" + component),
                        service -> RuntimeSelection.of(InferenceService.read(service), RuntimeCatalog.builtIn())));
        server = new Server(
                ServerOptions.builder().listen("127.0.0.1", 0).eventLoops(1).build(), List.of(api));
        url = "http://127.0.0.1:" + server.start().get(0).getPort();
    }

    @AfterEach
    void stop() {
        api.close();
        server.close();
        store.close();
    }

    private int run(String... args) {
        out.getBuffer().setLength(0);
        err.getBuffer().setLength(0);
        CommandLine command = Main.commandLine();
        command.setOut(new PrintWriter(out, true));
        command.setErr(new PrintWriter(err, true));
        String[] all = java.util.Arrays.copyOf(args, args.length + 2);
        all[args.length] = "--server";
        all[args.length + 1] = url;
        return command.execute(all);
    }

    private String file(String name, String text) throws Exception {
        Path path = dir.resolve(name);
        Files.createDirectories(path.getParent());
        Files.writeString(path, text);
        return path.toString();
    }

    private ObjectNode iris() {
        return store.get(new ResourceStore.Key(
                new ResourceStore.Type("serving.kserve.io", "inferenceservices"), "default", "iris"));
    }

    private void ready(String status) {
        ObjectNode resource = iris();
        ObjectNode state = resource.putObject("status");
        state.put("url", "http://iris");
        state.putArray("conditions")
                .addObject()
                .put("type", "Ready")
                .put("status", status)
                .put("message", "it answers");
        store.update(new ResourceStore.Type("serving.kserve.io", "inferenceservices"), resource, null);
    }

    @Test
    void applySaysWhatItDidAndTakesAwayWhatTheFileNoLongerSays() throws Exception {
        String file = file("iris.yaml", IRIS);
        assertThat(run("apply", "-f", file)).isZero();
        assertThat(out).hasToString("inferenceservice.serving.kserve.io/iris created\n");
        assertThat(run("apply", "-f", file)).isZero();
        assertThat(out).hasToString("inferenceservice.serving.kserve.io/iris unchanged\n");
        file("iris.yaml", IRIS.replace("    minReplicas: 1\n", "    timeout: 7\n"));
        assertThat(run("apply", "-f", file)).isZero();
        assertThat(out).hasToString("inferenceservice.serving.kserve.io/iris configured\n");
        assertThat(iris().at("/spec/predictor/timeout").asInt()).isEqualTo(7);
        assertThat(iris().at("/spec/predictor/minReplicas").asInt(-1)).isNotEqualTo(1);
        assertThat(iris().at("/metadata/generation").asInt()).isEqualTo(2);
    }

    @Test
    void applyTakesDirectoriesAndGoesOnAfterAMistake() throws Exception {
        file("many/a.yaml", IRIS.replace("iris", "a") + "---\n" + IRIS.replace("iris", "B"));
        file("many/deep/c.yml", IRIS.replace("iris", "c"));
        assertThat(run("apply", "-f", dir.resolve("many").toString())).isEqualTo(1);
        assertThat(out).hasToString("inferenceservice.serving.kserve.io/a created\n");
        assertThat(err.toString()).contains("\"B\" is invalid").contains("metadata.name");
        assertThat(run(
                        "apply",
                        "-R",
                        "-n",
                        "other",
                        "-f",
                        dir.resolve("many/deep").toString()))
                .isZero();
        assertThat(err.toString()).contains("Warning: namespace \"other\" did not exist and has been created");
        assertThat(run("get", "isvc", "-A")).isZero();
        assertThat(out.toString()).containsPattern("default +a ").containsPattern("other +c ");
        assertThat(run("apply", "-f", dir.resolve("absent").toString())).isEqualTo(1);
        assertThat(err.toString()).contains("does not exist");
        assertThat(run("apply", "-f", file("typo.yaml", IRIS.replace("kind: Inf", "kind: Imf"))))
                .isEqualTo(1);
        assertThat(err.toString()).contains("no matches for kind").contains("did you mean 'InferenceService'?");
    }

    @Test
    void getShowsTablesTreesAndNames() throws Exception {
        run("apply", "-f", file("iris.yaml", IRIS));
        ready("True");
        assertThat(run("get", "isvc")).isZero();
        assertThat(out.toString().lines().toList().get(0))
                .startsWith("NAME")
                .contains("READY")
                .endsWith("AGE");
        assertThat(out.toString().lines().toList().get(1)).startsWith("iris").contains("http://iris", "True");
        assertThat(run("get", "isvc", "iris", "-o", "name")).isZero();
        assertThat(out).hasToString("inferenceservice.serving.kserve.io/iris\n");
        assertThat(run("get", "isvc/iris", "-o", "json")).isZero();
        assertThat(JSON.readTree(out.toString())
                        .at("/spec/predictor/minReplicas")
                        .asInt())
                .isEqualTo(1);
        assertThat(run("get", "isvc/iris", "-o", "yaml")).isZero();
        ObjectNode read = ManifestReader.parse(out.toString(), "output").get(0);
        assertThat(read.at("/metadata/name").asText()).isEqualTo("iris");
        assertThat(run("get", "isvc", "-n", "void")).isZero();
        assertThat(err.toString()).contains("No resources found in void namespace.");
        assertThat(run("get", "isvcs")).isEqualTo(1);
        assertThat(err.toString())
                .contains("doesn't have a resource type \"isvcs\"")
                .contains("did you mean 'isvc'");
        assertThat(run("get", "isvc", "nope")).isEqualTo(1);
        assertThat(err.toString()).contains("inferenceservices.serving.kserve.io \"nope\" not found");
    }

    @Test
    void whatIsWrittenAsYamlReadsBackAsItWas() {
        ObjectNode tree = JSON.createObjectNode();
        for (String text : List.of(
                "plain",
                "yes",
                "No",
                "1",
                "1e3",
                "0x1f",
                "",
                " x",
                "a: b",
                "a #b",
                "- a",
                "null",
                "~",
                "two\nlines\n",
                "two\nlines",
                "\nx",
                "x\n\n",
                "tab\t",
                "2026-01-01",
                "gs://a/b",
                "http://h:8080/x",
                "a:",
                "{x}",
                "é",
                "=",
                "<<",
                "12:30:45",
                ".5",
                "!t",
                "*a",
                "&a",
                "@a",
                "%a",
                "a,b",
                "[a]",
                "'q'",
                "\"q\"")) {
            tree.put("k" + tree.size(), text);
            tree.withArray("list").add(text).addObject().put(text, text);
        }
        tree.putArray("nested").addArray().add(1).add(true).addNull();
        tree.putObject("empty");
        tree.putArray("none");
        tree.put("number", 1.5);
        assertThat(ManifestReader.parse(YamlWriter.of(tree), "output")).containsExactly(tree);
    }

    @Test
    void waitEndsWithTheConditionOrWithTheTime() throws Exception {
        run("apply", "-f", file("iris.yaml", IRIS));
        assertThat(run("wait", "isvc/iris", "--timeout", "1s")).isEqualTo(1);
        assertThat(err.toString()).contains("timed out after 1 s").contains("nereid describe inferenceservice iris");
        ScheduledThreadPoolExecutor timer = Threads.timer("later");
        Future<?> later = timer.schedule(() -> ready("True"), 300, TimeUnit.MILLISECONDS);
        assertThat(run("wait", "isvc/iris", "--for=condition=Ready", "--timeout", "20s"))
                .isZero();
        assertThat(out).hasToString("inferenceservice.serving.kserve.io/iris condition met\n");
        later.get();
        timer.shutdownNow();
        assertThat(run("wait", "isvc/nope")).isEqualTo(1);
        assertThat(err.toString()).contains("nope does not exist");
        assertThat(run("wait", "isvc/iris", "--for=sun")).isEqualTo(1);
        assertThat(err.toString()).contains("--for=sun is not known");
    }

    @Test
    void describeTellsConditionsAndEvents() throws Exception {
        run("apply", "-f", file("iris.yaml", IRIS));
        ready("False");
        ObjectNode event = JSON.createObjectNode();
        event.put("apiVersion", "v1").put("kind", "Event");
        event.putObject("metadata").put("name", "iris.1").put("namespace", "default");
        event.putObject("involvedObject").put("kind", "InferenceService").put("name", "iris");
        event.put("type", "Warning").put("reason", "ModelLoadFailed").put("message", "no such file");
        store.create(new ResourceStore.Type("", "events"), event);
        assertThat(run("describe", "isvc", "iris")).isZero();
        assertThat(out.toString())
                .contains("Name:           iris", "minReplicas: 1", "it answers")
                .containsPattern("Ready +False")
                .containsPattern("Warning +ModelLoadFailed .*no such file");
    }

    @Test
    void deleteRemovesAndSaysSo() throws Exception {
        String file = file("iris.yaml", IRIS);
        run("apply", "-f", file);
        assertThat(run("delete", "-f", file)).isZero();
        assertThat(out).hasToString("inferenceservice.serving.kserve.io \"iris\" deleted\n");
        assertThat(iris()).isNull();
        assertThat(run("delete", "isvc", "iris")).isEqualTo(1);
        assertThat(err.toString()).contains("not found");
        assertThat(run("delete", "isvc", "iris", "--ignore-not-found")).isZero();
        run("apply", "-f", file);
        assertThat(run("delete", "isvc", "--all")).isZero();
        assertThat(iris()).isNull();
    }

    @Test
    void logsAndSelectionAreTheServers() throws Exception {
        String file = file("iris.yaml", IRIS);
        run("apply", "-f", file);
        assertThat(run("logs", "iris", "-c", "predictor")).isZero();
        assertThat(out).hasToString("default/iris/predictor\n");
        assertThat(run("logs", "isvc/nope")).isEqualTo(1);
        assertThat(LogsCommand.overlap(List.of("a", "b", "c"), List.of("b", "c", "d")))
                .isEqualTo(2);
        assertThat(LogsCommand.overlap(List.of("a"), List.of("b"))).isZero();
        assertThat(run("explain-selection", "iris")).isZero();
        assertThat(out.toString())
                .contains("iris: kserve-sklearnserver")
                .containsPattern("kserve-xgbserver +cluster +no");
        String served = out.toString();
        assertThat(run("explain-selection", file)).isZero();
        assertThat(out).hasToString(served);
        assertThat(run("explain-selection", file, "--built-in")).isZero();
        assertThat(out).hasToString(served);
    }

    @Test
    void withoutAServerItIsSaidHowToStartOne() {
        String there = url;
        url = "http://127.0.0.1:1";
        assertThat(run("get", "isvc")).isEqualTo(1);
        assertThat(err.toString())
                .contains("no control API responds at http://127.0.0.1:1")
                .contains("nereid serve --control");
        url = there;
    }

    @Test
    void aPathThatIsNotThereIsNoService() {
        for (String path : List.of(dir + "/none", "./none", "../none.d")) {
            assertThat(run("explain-selection", path)).isEqualTo(1);
            assertThat(err.toString()).contains("the path \"" + path + "\" does not exist");
        }
    }

    @Test
    void logsThatCannotBeAreRefused() {
        assertThat(run("logs", "iris", "--tail", "-3")).isEqualTo(1);
        assertThat(err.toString()).contains("--tail is -3 (expected: a number of lines)");
        assertThat(run("logs", "iris", "-c", "predicter")).isEqualTo(1);
        assertThat(err.toString()).contains("--component predicter is not known");
    }

    @Test
    void aServerThatIsEncryptedIsToldFromOneThatIsNot() {
        url = url.replace("http:", "https:");
        assertThat(run("get", "isvc")).isEqualTo(1);
        assertThat(err.toString()).contains("its URL begins with http://");
    }
}
