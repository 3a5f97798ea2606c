// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

class CommandLineTest {
    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    @Test
    void aWrongFlagIsNamedWithTheNearestRightOne() {
        assertThat(run("serve", "--prot", "80", "models")).isEqualTo(2);
        assertThat(err.toString())
                .contains("Unknown option: '--prot'")
                .contains("did you mean '--port'?")
                .contains("nereid help serve")
                .doesNotContain("Usage:");
    }

    @Test
    void aWrongCommandIsNamedWithTheNearestRightOne() {
        assertThat(run("sevre", "models")).isEqualTo(2);
        assertThat(err.toString()).contains("'sevre'").contains("did you mean 'serve'?");
    }

    @Test
    void serveSaysWhatIsWrongBeforeItStarts(@TempDir Path dir) {
        assertThat(run("serve")).isEqualTo(1);
        assertThat(err.toString()).contains("no models given");
        assertThat(run("serve", dir.resolve("absent").toString())).isEqualTo(1);
        assertThat(err.toString()).contains("there is no '" + dir.resolve("absent") + "'");
        assertThat(run("serve", dir.toString(), "--port", "99999")).isEqualTo(1);
        assertThat(err.toString()).contains("--port 99999 is not a port (expected 0 to 65535)");
        assertThat(run("serve", dir.toString(), "--drain-timeout", "5x")).isEqualTo(1);
        assertThat(err.toString()).contains("'5x' is not a duration");
        assertThat(run("serve", dir.toString(), "--overload-target", "soon")).isEqualTo(1);
        assertThat(err.toString()).contains("'soon' is not a duration");
        assertThat(run("serve", dir.toString(), "--overload-target", "5ms")).isEqualTo(1);
        assertThat(err.toString()).contains("--overload-target 5ms is too short (expected: 10ms or more, or off)");
        assertThat(run("serve", dir.toString(), "--backend-config", "x")).isEqualTo(1);
        assertThat(err.toString()).contains("--backend-config 'x' is not [BACKEND,]KEY=VALUE");
        assertThat(run("serve", dir.toString(), "--load-model", "x")).isEqualTo(1);
        assertThat(err.toString()).contains("--load-model requires --model-control-mode explicit");
        assertThat(err.toString()).doesNotContain("\tat ");
    }

    @Test
    void optionsOfTritonserverAreTakenOrRefusedWithASentence(@TempDir Path dir) {
        assertThat(run("serve", dir.toString(), "--reuse-http-port=true")).isEqualTo(2);
        assertThat(err.toString()).contains("--reuse-http-port is not supported: a port belongs to one process");
        assertThat(run("serve", dir.toString(), "--rate-limit-resource", "R:1")).isEqualTo(1);
        assertThat(err.toString()).contains("--rate-limit-resource requires --rate-limit=execution_count");
        assertThat(run("serve", dir.toString(), "--cache-config", "local,size=1", "--cache-config", "redis,host=h"))
                .isEqualTo(1);
        assertThat(err.toString())
                .contains("found multiple cache configurations, but only a single cache is currently supported");
        assertThat(run("serve", dir.toString(), "--metrics-config", "summary_latncies=true"))
                .isEqualTo(1);
        assertThat(err.toString()).contains("did you mean 'summary_latencies'");
        assertThat(run("serve", dir.toString(), "--http-restricted-api", "loging:a=b"))
                .isEqualTo(1);
        assertThat(err.toString()).contains("loging").contains("logging");
        assertThat(run("serve", dir.toString(), "--trace-config", "level=FOO")).isEqualTo(1);
        assertThat(err.toString()).contains("unknown trace level 'FOO'");
        assertThat(run("serve", dir.toString(), "--host-policy", "cpu")).isEqualTo(1);
        assertThat(err.toString()).contains("--host-policy 'cpu' is not NAME,KEY=VALUE");
        assertThat(run("serve", dir.toString(), "--http-port", "99999")).isEqualTo(1);
        assertThat(err.toString()).contains("99999 is not a port");
    }

    @Test
    void everyRefusedOptionIsUnknownToServe() {
        CommandLine serve = Main.commandLine().getSubcommands().get("serve");
        serve.getCommandSpec().options().forEach(option -> {
            for (String name : option.names()) {
                assertThat(UnsupportedFlags.why(name)).as(name).isNull();
            }
        });
    }

    @Test
    void validateLoadsWhatTheFilesLeaveOpen(@TempDir Path dir) throws Exception {
        Files.createDirectories(dir.resolve("square/1"));
        Files.writeString(dir.resolve("square/config.pbtxt"), "backend: \"square\"\n");
        Files.createDirectories(dir.resolve("pipe/1"));
        Files.writeString(dir.resolve("pipe/config.pbtxt"), """
            platform: "ensemble"
            input { name: "N" data_type: TYPE_FP32 dims: [ 1 ] }
            output { name: "R" data_type: TYPE_INT32 dims: [ 1 ] }
            ensemble_scheduling { step { model_name: "square" model_version: -1
              input_map { key: "IN" value: "N" } output_map { key: "OUT" value: "R" } } }
            """);
        assertThat(run("validate", dir.toString(), "--files-only")).isZero();
        assertThat(run("validate", dir.toString())).isEqualTo(1);
        assertThat(out.toString()).contains("pipe").contains("inconsistent data type");
    }

    @Test
    void validateTellsEveryProblemAndItsExitCodeSaysWhetherThereAreAny(@TempDir Path dir) throws Exception {
        Path model = Files.createDirectories(dir.resolve("m/1")).getParent();
        Files.writeString(model.resolve("config.pbtxt"), "backend: \"onnxruntime\"\nmax_batch_sise: 4\n");
        Files.write(model.resolve("1/model.onnx"), new byte[] {1});
        assertThat(run("validate", dir.toString(), "--files-only")).isEqualTo(1);
        assertThat(out.toString()).contains("config.pbtxt:2:1").contains("max_batch_size");
    }

    private static String listed(Path dir, String name, String more) {
        return "config { name: '" + name + "' base_path: '" + dir.resolve(name) + "' model_platform: 'tensorflow' "
                + more + " }\n";
    }

    @Test
    void validateTellsOfEachModelOfAListWhetherItCanBeServed(@TempDir Path dir) throws Exception {
        Files.createDirectories(dir.resolve("good/3"));
        Files.writeString(dir.resolve("good/config.pbtxt"), "backend: \"square\"\n");
        Files.createDirectories(dir.resolve("bad/1"));
        Files.write(dir.resolve("bad/1/model.onnx"), new byte[] {1});
        Files.createDirectories(dir.resolve("empty"));
        Path list = dir.resolve("models.config");
        Files.writeString(
                list,
                "model_config_list {\n" + listed(dir, "good", "") + listed(dir, "bad", "") + listed(dir, "empty", "")
                        + "}\n");
        assertThat(run("validate", "--model_config_file", list.toString())).isEqualTo(1);
        assertThat(out.toString())
                .contains("ok: model 'good', versions [3]")
                .contains("error: model 'bad' did not become available as listed: version 1: ")
                .contains("No versions of servable empty found under base path")
                .contains("2 of 3 models cannot be served as listed");
        Files.writeString(list, "model_config_list {\n" + listed(dir, "good", "") + "}\n");
        assertThat(run("validate", "--model_config_file", list.toString(), "--files-only"))
                .isZero();
        String label = "version_labels { key: 'stable' value: 4 }";
        Files.writeString(list, "model_config_list {\n" + listed(dir, "good", label) + "}\n");
        assertThat(run("validate", "--model_config_file", list.toString())).isEqualTo(1);
        assertThat(err.toString()).contains("stable").contains("4");
        Files.writeString(list, "model_config_list {\n  config { nam: 'x' }\n}\n");
        assertThat(run("validate", "--model_config_file", list.toString())).isEqualTo(1);
        assertThat(err.toString()).contains("models.config:2:");
        assertThat(run("validate")).isEqualTo(1);
        assertThat(err.toString()).contains("nothing to validate is given");
    }

    @Test
    void noServerIsSaidSoWithWhatToDo() {
        assertThat(run("models", "--url", "127.0.0.1:1")).isEqualTo(1);
        assertThat(err.toString())
                .contains("no server responds at http://127.0.0.1:1")
                .contains("nereid serve");
    }

    @Test
    void versionNamesTheBackends() {
        assertThat(run("version")).isZero();
        assertThat(out.toString())
                .contains("nereid ")
                .contains("backend onnxruntime")
                .contains("backend java");
        assertThat(out.toString()).doesNotContain("${");
    }

    private int run(String... args) {
        CommandLine command = Main.commandLine();
        command.setOut(new PrintWriter(out, true)).setErr(new PrintWriter(err, true));
        return command.execute(args);
    }
}
