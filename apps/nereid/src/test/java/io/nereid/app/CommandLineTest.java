// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
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
        assertThat(run("serve", dir.toString(), "--drain-timeout", "5x")).isEqualTo(2);
        assertThat(err.toString()).contains("'--drain-timeout'").contains("'5x' is not a duration");
        assertThat(run("serve", dir.toString(), "--model-memory", "5 cats")).isEqualTo(2);
        assertThat(err.toString()).contains("'--model-memory'").contains("'5 cats'");
        assertThat(run("serve", dir.toString(), "--overload-target", "soon")).isEqualTo(1);
        assertThat(err.toString()).contains("'soon' is not a duration");
        assertThat(run("serve", dir.toString(), "--overload-target", "5ms")).isEqualTo(1);
        assertThat(err.toString()).contains("--overload-target 5ms is too short (expected: 10ms or more, or off)");
        assertThat(run("serve", dir.toString(), "--backend-config", "x")).isEqualTo(1);
        assertThat(err.toString()).contains("--backend-config 'x' is not [BACKEND,]KEY=VALUE");
        assertThat(run("serve", dir.toString(), "--port=0", "--backend-config", "xgbost,default-max-batch-size=4"))
                .isEqualTo(1);
        assertThat(err.toString()).contains("there is no backend 'xgbost'").contains("did you mean 'xgboost'?");
        for (String backend :
                List.of("xgboost", "lightgbm", "catboost", "sklearn", "onnxruntime", "python", "tokenizer")) {
            assertThat(run(
                            "serve",
                            dir.toString(),
                            "--port=0",
                            "--backend-config",
                            backend + ",default-max-batch-sise=4"))
                    .isEqualTo(1);
            assertThat(err.toString())
                    .contains("there is no setting 'default-max-batch-sise' of the backend " + backend)
                    .contains("did you mean 'default-max-batch-size'?");
        }
        assertThat(run("serve", dir.toString(), "--load-model", "x")).isEqualTo(1);
        assertThat(err.toString()).contains("--load-model requires --model-control-mode explicit");
        assertThat(err.toString()).doesNotContain("\tat ");
    }

    @Test
    void optionsOfTritonserverAreTakenOrRefusedWithASentence(@TempDir Path dir) {
        assertThat(run("serve", dir.toString(), "--reuse-http-port=true")).isEqualTo(2);
        assertThat(err.toString()).contains("--reuse-http-port=true is not supported: a port belongs to one process");
        assertThat(run("serve", dir.toString(), "--allow-http=false")).isEqualTo(2);
        assertThat(err.toString()).contains("--allow-http=false is not supported: REST and gRPC share a port");
        assertThat(run("serve", dir.toString(), "--allow-grpc=maybe")).isEqualTo(2);
        assertThat(err.toString()).contains("invalid value 'maybe' for --allow-grpc (expected: true or false)");
        assertThat(run("serve", dir.toString(), "--strict-readiness=maybe")).isEqualTo(2);
        assertThat(err.toString()).contains("'maybe' is not true or false");
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

    /** The options of tritonserver 2.70, from its command line parser, without {@code --help}. */
    private static final String OPTIONS_OF_TRITONSERVER = """
            id exit-timeout-secs model-store model-repository exit-on-error disable-auto-complete-config \
            strict-readiness model-control-mode repository-poll-secs load-model model-config-name \
            model-load-thread-count model-load-retry-count model-namespacing enable-peer-access allow-http \
            http-address http-port reuse-http-port http-header-forward-pattern http-thread-count \
            http-max-input-size http-restricted-api allow-grpc grpc-address grpc-port reuse-grpc-port \
            grpc-header-forward-pattern grpc-infer-thread-count grpc-infer-allocation-pool-size \
            grpc-max-response-pool-size grpc-use-ssl grpc-use-ssl-mutual grpc-server-cert grpc-server-key \
            grpc-root-cert grpc-infer-response-compression-level grpc-keepalive-time grpc-keepalive-timeout \
            grpc-keepalive-permit-without-calls grpc-http2-max-pings-without-data \
            grpc-http2-min-recv-ping-interval-without-data grpc-http2-max-ping-strikes \
            grpc-max-connection-age grpc-max-connection-age-grace grpc-restricted-protocol log-verbose \
            log-info log-warning log-error log-format log-file allow-sagemaker sagemaker-port \
            sagemaker-safe-port-range sagemaker-thread-count allow-vertex-ai vertex-ai-port \
            vertex-ai-thread-count vertex-ai-default-model allow-metrics allow-gpu-metrics allow-cpu-metrics \
            metrics-address metrics-port metrics-interval-ms metrics-config trace-config cache-config \
            cache-directory rate-limit rate-limit-resource pinned-memory-pool-byte-size \
            cuda-memory-pool-byte-size cuda-virtual-address-size min-supported-compute-capability \
            buffer-manager-thread-count host-policy model-load-gpu-limit allow-client-shm backend-directory \
            backend-config repoagent-directory strict-model-config response-cache-byte-size trace-file \
            trace-level trace-rate trace-count trace-log-frequency
            """;

    @Test
    void everyOptionOfTritonserverIsKnownAndDocumented() throws Exception {
        CommandLine serve = Main.commandLine().getSubcommands().get("serve");
        String page = Files.readString(Path.of("../../docs/COMPATIBILITY.md"));
        for (String option : OPTIONS_OF_TRITONSERVER.trim().split(" ")) {
            assertThat(serve.getCommandSpec().findOption("--" + option))
                    .as(option)
                    .isNotNull();
            assertThat(page).contains("`--" + option + "`");
        }
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

    @Test
    void validateKnowsGpusThatAreNotThere(@TempDir Path dir) throws Exception {
        Path model = Files.createDirectories(dir.resolve("m/1")).getParent();
        Files.writeString(model.resolve("config.pbtxt"), "backend: \"square\"\ninstance_group { gpus: 2 }\n");
        assertThat(run("validate", dir.toString(), "--files-only")).isEqualTo(1);
        assertThat(out.toString()).contains("config.pbtxt:2:24").contains("this server does not support GPUs");
        assertThat(run("validate", dir.toString(), "--assume-gpus", "2:8.6")).isEqualTo(1);
        assertThat(out.toString()).contains("unsupported gpu id 2").contains("are: 0 1");
        assertThat(run("validate", dir.toString(), "--assume-gpus", "3")).isEqualTo(1);
        assertThat(out.toString()).contains("backend 'square': its library computes on processors only");
        Files.writeString(model.resolve("config.pbtxt"), "backend: \"square\"\ninstance_group { }\n");
        assertThat(run("validate", dir.toString(), "--assume-gpus", "3")).isZero();
        assertThat(run("validate", dir.toString(), "--assume-gpus", "many")).isEqualTo(1);
        assertThat(err.toString()).contains("--assume-gpus 'many' is not valid (expected: N or N:MAJOR.MINOR");
    }

    @Test
    void validateDecidesAboutPlansAsTheirLoadWould(@TempDir Path dir) throws Exception {
        Path model = Files.createDirectories(dir.resolve("m/1")).getParent();
        Files.writeString(model.resolve("1/model.plan"), "ftrt");
        assertThat(run("validate", dir.toString())).isEqualTo(1);
        assertThat(out.toString())
                .contains("model m: backend 'tensorrt' runs on GPUs only, and server does not support GPUs");
        Files.writeString(
                model.resolve("config.pbtxt"), "platform: \"tensorrt_plan\"\ninstance_group { profile: \"1\" }");
        assertThat(run("validate", dir.toString(), "--assume-gpus", "1")).isEqualTo(1);
        assertThat(out.toString()).contains("config.pbtxt:2:27").contains("has profile '1' (expected: 0)");
        Files.writeString(model.resolve("config.pbtxt"), "platform: \"tensorrt_plan\"\n");
        assertThat(run("validate", dir.toString(), "--assume-gpus", "1")).isEqualTo(1);
        assertThat(out.toString()).contains("its GPU build is the plugin onnxruntime-cuda");
        Files.writeString(model.resolve("config.pbtxt"), "backend: \"tensorrt\"\ninstance_group { kind: KIND_CPU }");
        assertThat(run("validate", dir.toString(), "--assume-gpus", "1")).isEqualTo(1);
        assertThat(out.toString()).contains("has kind KIND_CPU but backend 'tensorrt' runs on GPUs only");
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
