// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.access.AccessControl;
import io.nereid.access.AccessOptions;
import io.nereid.app.process.Logging;
import io.nereid.app.serve.NereidServer;
import io.nereid.base.Clock;
import io.nereid.engine.options.EngineOptions;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.tensor.ByteBudget;
import io.nereid.tracing.TraceOptions;
import io.nereid.transport.ServerOptions;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.snakeyaml.engine.v2.api.Load;
import org.snakeyaml.engine.v2.api.LoadSettings;
import picocli.CommandLine;

/** The commands that print data, in all formats, against a server on a socket. */
class ClientCommandsTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String INPUTS = "--input=INPUT0=1..16 --input=INPUT1=1..16";

    @TempDir
    private static Path dir = Path.of("");

    private static NereidServer server;
    private static String url;

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    @BeforeAll
    static void start() throws Exception {
        Path model = Files.createDirectories(dir.resolve("models/simple/1")).getParent();
        Path from = Path.of("../../examples/models/simple");
        Files.copy(from.resolve("1/model.onnx"), model.resolve("1/model.onnx"));
        Files.copy(from.resolve("config.pbtxt"), model.resolve("config.pbtxt"));
        server = new NereidServer(
                EngineOptions.builder(List.of(dir.resolve("models")))
                        .deviceThreads(1)
                        .loadThreads(1)
                        .scratch(dir.resolve("scratch"))
                        .build(),
                ServerOptions.builder().listen("127.0.0.1", 0).eventLoops(1),
                new ByteBudget(1 << 26),
                V2Options.defaults("test", 1 << 26),
                v1 -> {},
                TraceOptions.OFF,
                Logging.configure(Logging.Format.TEXT, Level.OFF),
                new AccessControl(AccessOptions.none(Clock.system())),
                new NereidServer.ClientRules(true, null),
                null);
        url = "http://127.0.0.1:" + server.listen().get(0).getPort();
        server.load().toCompletableFuture().get(60, TimeUnit.SECONDS);
    }

    @AfterAll
    static void stop() {
        server.stop(Duration.ofSeconds(5));
    }

    private int run(String... args) {
        out.getBuffer().setLength(0);
        err.getBuffer().setLength(0);
        CommandLine command = Main.commandLine();
        command.setOut(new PrintWriter(out, true)).setErr(new PrintWriter(err, true));
        return command.execute(args);
    }

    private List<String> words(String line) {
        List<String> words = new ArrayList<>(List.of(line.split(" ")));
        words.replaceAll(word -> word.replace("URL", url).replace("DIR", dir.toString()));
        return words;
    }

    /** The same tree in JSON and in YAML, and something else for people. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "models --url=URL",
                "models list --url=URL",
                "models describe simple --url=URL",
                "models load simple --url=URL",
                "infer simple --url=URL " + INPUTS,
                "health --url=URL",
                "version",
                "plugins --plugin-dir=DIR",
                "plugins list --plugin-dir=DIR",
                "config show --port=9000",
                "validate DIR/models",
                "convert DIR/models/simple/1/model.onnx",
                "keys list --file=DIR/keys.json"
            })
    void dataIsPrintedAsATableAsJsonAndAsYaml(String line) throws IOException {
        int made = run("keys", "create", "a", "--file=" + dir.resolve("keys.json"));
        assertThat(made).isBetween(0, 1); // the key may be there from the case before
        List<String> words = words(line);
        assertThat(run(words.toArray(String[]::new))).as(err.toString()).isZero();
        String table = out.toString();
        List<String> json = new ArrayList<>(words);
        json.addAll(List.of("-o", "json"));
        assertThat(run(json.toArray(String[]::new))).as(err.toString()).isZero();
        JsonNode document = JSON.readTree(out.toString());
        assertThat(document.isContainerNode()).isTrue();
        List<String> yaml = new ArrayList<>(words);
        yaml.addAll(List.of("-o", "YAML"));
        assertThat(run(yaml.toArray(String[]::new))).as(err.toString()).isZero();
        Object parsed = new Load(LoadSettings.builder().build()).loadFromString(out.toString());
        JsonNode other = JSON.readTree(JSON.writeValueAsString(parsed));
        assertThat(other.getNodeType()).isEqualTo(document.getNodeType());
        assertThat(other.size()).isEqualTo(document.size());
        assertThat(table).isNotEqualTo(out.toString()).doesNotStartWith("{").doesNotStartWith("[ {");
    }

    /** Commands that do something and print what they did, or that are another program's form. */
    @Test
    void everyCommandThatPrintsDataHasTheOption() {
        Set<String> without = new TreeSet<>();
        collect(Main.commandLine(), without);
        assertThat(without)
                .containsExactlyInAnyOrder(
                        "apply",
                        "cds",
                        "completion",
                        "config schema", // JSON itself
                        "delete",
                        "explainer",
                        "fetch",
                        "gateway",
                        "help",
                        "keys revoke",
                        "login",
                        "logout",
                        "logs",
                        "man-page",
                        "open",
                        "operator",
                        "operator manifests",
                        "operator node-agent",
                        "serve",
                        "transformer",
                        "wait");
    }

    private static void collect(CommandLine command, Set<String> without) {
        command.getSubcommands().values().forEach(sub -> {
            boolean group =
                    !sub.getSubcommands().isEmpty() && Set.of("config", "keys").contains(sub.getCommandName());
            String name = sub.getCommandSpec().qualifiedName().replace("nereid ", "");
            boolean help = name.endsWith(" help");
            if (!group && !help && sub.getCommandSpec().findOption("-o") == null) {
                without.add(name);
            }
            collect(sub, without);
        });
    }

    @Test
    void aModelIsDescribed() throws IOException {
        assertThat(run("infer", "simple", "--url=" + url, "--input=INPUT0=1..16", "--input=INPUT1=1..16"))
                .isZero();
        assertThat(run("models", "describe", "simple", "--url=" + url)).isZero();
        assertThat(out.toString())
                .contains("simple, onnxruntime_onnx")
                .contains("1        READY")
                .contains("INPUT0  INT32  [-1,16]")
                .contains("max_batch_size: 8")
                .contains("Statistics");
        assertThat(run("models", "describe", "simple", "--url=" + url, "-o", "json"))
                .isZero();
        JsonNode document = JSON.readTree(out.toString());
        assertThat(document.at("/versions/0/state").asText()).isEqualTo("READY");
        assertThat(document.at("/inputs/1/name").asText()).isEqualTo("INPUT1");
        assertThat(document.at("/config/max_batch_size").asInt()).isEqualTo(8);
        assertThat(document.at("/statistics/0/inference_stats/success/count").asLong())
                .isPositive();
        assertThat(run("models", "describe", "absent", "--url=" + url)).isEqualTo(1);
        assertThat(err.toString()).contains("does not have model 'absent'");
        assertThat(run("models", "describe", "simple", "--version-of-model=7", "--url=" + url))
                .isEqualTo(1);
        assertThat(err.toString()).contains("with a version '7'");
    }

    @Test
    void topPrintsOneTableWithoutATerminal() throws IOException {
        assertThat(run("top", "--interval=50ms", "--url=" + url))
                .as(err.toString())
                .isZero();
        assertThat(out.toString())
                .contains("MODEL")
                .contains("P99 ms")
                .contains("simple")
                .doesNotContain("\u001b");
        assertThat(run("top", "--once", "--interval=50ms", "--url=" + url, "-o", "json"))
                .isZero();
        JsonNode row = JSON.readTree(out.toString()).path(0);
        assertThat(row.path("model").asText()).isEqualTo("simple");
        assertThat(row.path("state").asText()).isEqualTo("READY");
        assertThat(row.path("memory_bytes").asLong()).isPositive();
        assertThat(row.path("queued_requests").isNumber()).isTrue();
        assertThat(run("top", "--interval=0s", "--url=" + url)).isEqualTo(2);
        assertThat(run("top", "--sort=size", "--url=" + url)).isEqualTo(2);
        assertThat(run("top", "--url=http://127.0.0.1:1")).isEqualTo(1);
        assertThat(err.toString()).contains("no server responds");
    }

    @Test
    void theConsoleOfAServerIsOpenedOrNamed() {
        assertThat(run("open", "--print", "--url=" + url)).isZero();
        assertThat(out.toString()).isEqualToIgnoringNewLines(url + "/console");
        assertThat(run("open", "--print", "--url=http://127.0.0.1:1")).isEqualTo(1);
    }

    @Test
    void progressIsNotPrintedWithoutATerminal() {
        assertThat(run("models", "load", "simple", "--url=" + url)).isZero();
        assertThat(err.toString()).isEmpty();
    }

    /** The shells that can check a script. */
    enum Shell {
        BASH("bash", "-n"),
        ZSH("zsh", "-n"),
        FISH("fish", "--no-execute");

        private final String program;
        private final String check;

        Shell(String program, String check) {
            this.program = program;
            this.check = check;
        }
    }

    @ParameterizedTest
    @EnumSource
    void aShellTakesItsCompletion(Shell shell) throws Exception {
        assertThat(run("completion", shell.program)).isZero();
        assertThat(out.toString()).contains("perf").contains("concurrency").contains("describe");
        Path script = Files.writeString(dir.resolve("completion." + shell.program), out.toString());
        boolean here = Stream.of(System.getenv().getOrDefault("PATH", "").split(":"))
                .anyMatch(folder -> Files.isExecutable(Path.of(folder, shell.program)));
        assumeTrue(here, shell.program + " is not here");
        Process process = new ProcessBuilder(shell.program, shell.check, script.toString())
                .redirectErrorStream(true)
                .start();
        String printed = new String(process.getInputStream().readAllBytes(), java.nio.charset.StandardCharsets.UTF_8);
        assertThat(process.waitFor()).as(printed).isZero();
    }
}
