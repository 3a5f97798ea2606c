// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.app.config.ServeConfiguration;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;
import picocli.CommandLine.Model.OptionSpec;

/** The configuration file of {@code nereid serve}: who wins, what is refused and where, what is shown. */
class ConfigurationTest {
    @TempDir
    Path folder;

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    private int run(Map<String, String> environment, String... args) {
        out.getBuffer().setLength(0);
        err.getBuffer().setLength(0);
        CommandLine program =
                Main.commandLine().setOut(new PrintWriter(out, true)).setErr(new PrintWriter(err, true));
        return Main.run(program, args, environment);
    }

    private String file(String text) throws IOException {
        return Files.writeString(folder.resolve("nereid.yaml"), text).toString();
    }

    private static CommandLine serve() {
        return Objects.requireNonNull(Main.commandLine().getSubcommands().get("serve"));
    }

    /** Runs the server with a wrong file, and returns what it says. */
    private String refusal(String text) throws IOException {
        assertThat(run(Map.of(), "serve", "--config", file(text))).isEqualTo(2);
        assertThat(err.toString()).doesNotContain("\tat ");
        return err.toString().replace(folder.toString() + "/", "");
    }

    @Test
    void aFlagWinsOverTheEnvironmentTheEnvironmentOverTheFileTheFileOverTheDefault() throws IOException {
        String file = file("""
                models: [a, b]
                port: 1001
                host: 0.0.0.0
                io-threads: 3
                access-log: yes
                backend-config: ["onnxruntime,default-max-batch-size=8", "x=y"]
                compat-ports: [triton, kserve]
                """.replace("yes", "true"));
        ServeConfiguration configuration = ServeConfiguration.of(
                ConfigurationTest::serve, List.of("--config", file, "--port=1002"), Map.of("NEREID_HOST", "::1"));
        assertThat(configuration.arguments())
                .containsExactly(
                        "a",
                        "b",
                        "--io-threads=3",
                        "--access-log",
                        "--backend-config=onnxruntime,default-max-batch-size=8",
                        "--backend-config=x=y",
                        "--compat-ports=triton",
                        "--compat-ports=kserve",
                        "--config",
                        file,
                        "--port=1002");
        // Models on the command line take the place of the file's, and so does a list of options.
        configuration = ServeConfiguration.of(
                ConfigurationTest::serve,
                List.of("c", "--backend-config", "z=1"),
                Map.of("NEREID_CONFIG", file, "NEREID_PORT", "1"));
        assertThat(configuration.arguments())
                .containsExactly(
                        "--host=0.0.0.0",
                        "--io-threads=3",
                        "--access-log",
                        "--compat-ports=triton",
                        "--compat-ports=kserve",
                        "c",
                        "--backend-config",
                        "z=1");
    }

    @Test
    void whatIsShownHasItsOrigin() throws IOException {
        String file = file("models: models\nport: 9000\ndrain-timeout: 10s\naccess-log: false\n");
        assertThat(run(Map.of(), "config", "show", "--config", file, "--io-threads", "2"))
                .as(err.toString())
                .isZero();
        List<String> lines =
                out.toString().lines().map(l -> l.strip().replaceAll(" +", " ")).toList();
        assertThat(lines)
                .contains(
                        "models models " + file + ":1:1",
                        "port 9000 " + file + ":2:1",
                        "drain-timeout 10s " + file + ":3:1",
                        "access-log false " + file + ":4:1",
                        "io-threads 2 command line",
                        "host 127.0.0.1 default")
                .noneMatch(line -> line.startsWith("grpc-port "));
        assertThat(run(Map.of(), "config", "show", "--all", "models")).isZero();
        assertThat(out.toString()).contains("grpc-port");
        assertThat(run(Map.of(), "config", "show", "--cache-config", "redis,password=abc"))
                .isZero();
        assertThat(out.toString()).doesNotContain("abc").contains("(not shown)");
        out.getBuffer().setLength(0);
        assertThat(run(Map.of(), "config", "show", "--http-restricted-api", "model-repository:admin-key=abc, =d"))
                .isZero();
        assertThat(out.toString()).doesNotContain("abc", ", =d").contains("model-repository:admin-key=(not shown)");
    }

    @Test
    void anErrorHasLineAndColumnAndTheNearestName() throws IOException {
        assertThat(refusal("host: 0.0.0.0\nprot: 80\n"))
                .contains("nereid.yaml:2:1: there is no option 'prot'")
                .contains("did you mean 'port'?");
        assertThat(refusal("\n\nport: many\n"))
                .contains("nereid.yaml:3:1: Invalid value for option '--port'")
                .contains("many");
        assertThat(refusal("drain-timeout: 5 cats\n"))
                .contains("nereid.yaml:1:1: Invalid value for option '--drain-timeout'")
                .contains("'5 cats' is not a duration");
        assertThat(refusal("port: 1\nhost: a\nport: 2\n"))
                .contains("nereid.yaml:3:1: 'port' is there twice; the first is in line 1");
        assertThat(refusal("port: [1, 2]\n")).contains("nereid.yaml:1:1: 'port' takes one value, not a list");
        assertThat(refusal("access-log: maybe\n"))
                .contains("nereid.yaml:1:1: 'access-log' is 'maybe' (expected: true or false)");
        assertThat(refusal("port:\n")).contains("nereid.yaml:1:6: 'port' has no value");
        assertThat(refusal("tls: {cert: a}\n")).contains("nereid.yaml:1:6: 'tls' is a text, a number, true or false");
        assertThat(refusal("- port\n")).contains("nereid.yaml:1:1: expected options with their values");
        assertThat(refusal("a: 'b\n")).contains("nereid.yaml:2:1: ");
        assertThat(refusal("http-port: 8000\n"))
                .contains("nereid.yaml:1:1: 'http-port' is another name of 'port'")
                .contains("write port in the file");
        assertThat(refusal("config: other.yaml\n")).contains("there is no option 'config'");
    }

    @Test
    void aFileThatCannotBeReadIsNamed() throws IOException {
        assertThat(run(
                        Map.of(),
                        "serve",
                        "--config",
                        folder.resolve("absent.yaml").toString()))
                .isEqualTo(2);
        assertThat(err.toString())
                .contains("--config: the file '" + folder.resolve("absent.yaml") + "' does not exist");
        Path latin = Files.write(folder.resolve("latin.yaml"), "host: \u00e9".getBytes(StandardCharsets.ISO_8859_1));
        assertThat(run(Map.of("NEREID_CONFIG", latin.toString()), "serve")).isEqualTo(2);
        assertThat(err.toString()).contains("is not UTF-8 text");
        assertThat(run(Map.of(), "serve", "--config", file("# nothing\n"))).isEqualTo(1);
        assertThat(err.toString()).contains("no models given");
    }

    @Test
    void theSchemaHasEachOptionThatMayBeInAFile() throws IOException {
        assertThat(run(Map.of(), "config", "schema")).isZero();
        JsonNode schema = new ObjectMapper().readTree(out.toString());
        assertThat(schema.path("additionalProperties").asBoolean(true)).isFalse();
        JsonNode properties = schema.path("properties");
        assertThat(properties.path("port").path("type").asText()).isEqualTo("integer");
        assertThat(properties.path("port").path("default").asInt()).isEqualTo(8080);
        assertThat(properties.path("model-control-mode").path("enum").toString())
                .isEqualTo("[\"none\",\"poll\",\"explicit\"]");
        assertThat(properties.path("models").path("anyOf")).hasSize(2);
        assertThat(properties.has("http-port")).isFalse();
        assertThat(properties.has("config")).isFalse();
        // What the schema allows, the file takes.
        TreeSet<String> refused = new TreeSet<>();
        for (OptionSpec option : serve().getCommandSpec().options()) {
            String key = option.longestName().replaceFirst("^-+", "");
            if (properties.has(key)) {
                String value = option.isMultiValue() ? "[]" : option.type() == boolean.class ? "true" : "1";
                ServeConfiguration.of(
                        ConfigurationTest::serve, List.of("--config", file(key + ": " + value + "\n")), Map.of());
                assertThat(properties.path(key).path("description").asText())
                        .as(key)
                        .isNotEmpty();
            } else if (!option.hidden()) {
                refused.add(key);
            }
        }
        assertThat(refused).contains("config", "help", "http-port", "exit-timeout-secs");
    }
}
