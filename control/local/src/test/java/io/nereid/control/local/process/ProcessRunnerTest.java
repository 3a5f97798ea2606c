// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.process;

import static io.nereid.control.local.workload.Fakes.ONE;
import static io.nereid.control.local.workload.Fakes.plan;
import static io.nereid.control.local.workload.Fakes.route;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import io.nereid.base.Clock;
import io.nereid.control.core.ObservedState.Phase;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.Workload.EnvironmentSource;
import io.nereid.control.core.Workload.Port;
import io.nereid.control.core.Workload.ProcessContainer;
import io.nereid.control.core.Workload.Scaling;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.gateway.upstream.RevisionTarget.Processes;
import io.nereid.control.gateway.upstream.RevisionTarget.Replica;
import io.nereid.control.local.LocalInfrastructure;
import io.nereid.control.local.workload.Fakes;
import io.nereid.control.local.workload.Fakes.FakeArtifacts;
import io.nereid.control.local.workload.Fakes.FakeComponents;
import io.nereid.control.local.workload.Fakes.FakeEngine;
import io.nereid.control.local.workload.Fakes.FakeRouting;
import io.nereid.control.plane.loop.EventLoop;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests with real child processes. */
class ProcessRunnerTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    @TempDir
    Path disk;

    private final FakeRouting routing = new FakeRouting();
    private final FakeArtifacts artifacts = new FakeArtifacts();
    private LocalInfrastructure infrastructure = null;

    @BeforeEach
    void start() {
        infrastructure = newInfrastructure();
        infrastructure.start();
        artifacts.paths.put("file:///models", disk.resolve("models"));
    }

    private LocalInfrastructure newInfrastructure() {
        return new LocalInfrastructure(
                Fakes.settings(disk.resolve("plane")),
                new FakeEngine().models,
                artifacts,
                new FakeComponents(),
                routing,
                EventLoop.threads(Clock.system()));
    }

    @AfterEach
    void close() {
        infrastructure.close();
    }

    private static void until(String what, BooleanSupplier condition) {
        long end = Clock.system().nanos() + Duration.ofSeconds(60).toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(Clock.system().nanos() - end).as("%s within 60 s", what).isNegative();
            LockSupport.parkNanos(20_000_000);
        }
    }

    private static void python() {
        boolean there = false;
        for (String directory : System.getenv("PATH").split(":")) {
            there |= Files.isExecutable(Path.of(directory, "python3"));
        }
        assumeTrue(there, "python3 is not on this machine: child processes that serve HTTP are NOT tested");
    }

    private static ProcessContainer container(
            List<String> command,
            List<String> arguments,
            Map<String, String> environment,
            List<Port> ports,
            @Nullable String readiness,
            @Nullable String liveness,
            @Nullable String startup,
            @Nullable String resources) {
        return new ProcessContainer(
                "kserve-container",
                command,
                arguments,
                environment,
                null,
                ports,
                tree(readiness),
                tree(liveness),
                tree(startup),
                resources == null ? JsonNodeFactory.instance.objectNode() : tree(resources));
    }

    private static JsonNode tree(@Nullable String json) {
        try {
            return json == null ? JsonNodeFactory.instance.objectNode() : JSON.readTree(json.replace('\'', '"'));
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private static ProcessContainer shell(String script, @Nullable String readiness) {
        return container(List.of("sh", "-c", script), List.of(), Map.of(), List.of(), readiness, null, null, null);
    }

    private static final String ALWAYS = "{'exec':{'command':['true']}}";
    private static final String NEVER = "{'exec':{'command':['false']},'periodSeconds':1}";

    private void run(
            Component component, Scaling scaling, List<Workload.Artifact> files, ProcessContainer... containers) {
        infrastructure.apply(
                "default",
                "iris",
                plan(
                        route("iris-1"),
                        Fakes.workload(
                                "iris-1", component, new Workload.Process(files, List.of(containers)), scaling)));
    }

    private void run(ProcessContainer container) {
        run(Component.PREDICTOR, ONE, List.of(), container);
    }

    private @Nullable WorkloadState state() {
        return infrastructure.observe("default", "iris").get("iris-1");
    }

    private boolean is(Phase phase) {
        WorkloadState state = state();
        return state != null && state.phase() == phase;
    }

    private List<String> logs() {
        return infrastructure.logs("default", "iris-1", 1000);
    }

    private boolean logged(String text) {
        return logs().stream().anyMatch(l -> l.contains(text));
    }

    private List<Replica> replicas() {
        Fakes.FakeActivator activator = routing.activators.get("default/iris-1");
        return activator != null && activator.destination instanceof Processes p ? p.replicas() : List.of();
    }

    private static ProcessContainer server(String... more) {
        List<String> arguments = new java.util.ArrayList<>(
                List.of("-m", "http.server", "$(PORT)", "--bind", "127.0.0.1", "--directory", "/mnt/models"));
        arguments.addAll(List.of(more));
        return container(
                List.of("python3"),
                arguments,
                Map.of(),
                List.of(),
                "{'httpGet':{'path':'/iris.txt','port':8080},'periodSeconds':1}",
                null,
                null,
                null);
    }

    @Test
    void aServerGetsAPortAndFilesAndTakesRequestsWhenItIsReady() throws Exception {
        python();
        Files.createDirectories(disk.resolve("models"));
        Files.writeString(disk.resolve("models/iris.txt"), "hello");

        run(Component.PREDICTOR, ONE, List.of(Fakes.artifact("file:///models")), server());
        until("ready", () -> is(Phase.READY));

        Replica replica = replicas().get(0);
        HttpResponse<String> answer = HttpClient.newHttpClient()
                .send(
                        HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + replica.httpPort() + "/iris.txt"))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
        assertThat(answer.body()).isEqualTo("hello");
        assertThat(routing.activator("iris-1").capacity).isEqualTo(1);
        until("its output in the log", () -> logged("GET /iris.txt"));
    }

    @Test
    void everyReplicaHasAPortOfItsOwn() throws Exception {
        python();
        Files.createDirectories(disk.resolve("models"));
        Files.writeString(disk.resolve("models/iris.txt"), "hello");
        Scaling two = new Scaling(2, 2, "concurrency", null, "none", Map.of());

        run(Component.PREDICTOR, two, List.of(Fakes.artifact("file:///models")), server());
        until("both ready", () -> replicas().size() == 2);

        assertThat(replicas()).doesNotHaveDuplicates();
    }

    @Test
    void aProcessWithAFixedPortHasOneReplicaAndTheLogHasTheReason() {
        Scaling two = new Scaling(2, 2, "concurrency", null, "none", Map.of());
        run(
                Component.PREDICTOR,
                two,
                List.of(),
                container(
                        List.of("sleep", "60"),
                        List.of(),
                        Map.of(),
                        List.of(new Port(null, 31_999)),
                        ALWAYS,
                        null,
                        null,
                        null));
        until("ready", () -> is(Phase.READY));

        assertThat(replicas()).containsExactly(new Replica("127.0.0.1", 31_999, 0));
        assertThat(logged("the command listens on a fixed port, so there can be only one replica"))
                .isTrue();
    }

    @Test
    void variablesComeFromSecretsAndWhatIsWrittenOutGoesBeforeThem() {
        ProcessContainer one = new ProcessContainer(
                "kserve-container",
                List.of("sh", "-c"),
                List.of("echo \"$TOKEN for $USERNAME\"; sleep 60"),
                Map.of("USERNAME", "written"),
                List.of(new EnvironmentSource("", "Secret", "hub", null, false)),
                null,
                List.of(),
                tree(ALWAYS),
                tree(null),
                tree(null),
                JsonNodeFactory.instance.objectNode());
        run(one);
        until("the reason", () -> logged("not started: there is no hub"));

        artifacts.objects.put("hub", Map.of("TOKEN", "t0ken", "USERNAME", "secret"));
        infrastructure.retry("default");
        until("both", () -> logged("t0ken for written"));
    }

    @Test
    void variablesAreExpandedAndTheServersSecretsStayBehind() {
        run(container(
                List.of("sh", "-c"),
                List.of("echo \"$GREETING at $(PORT) of $INFERENCE_SERVICE_NAME in $MODEL_DIR\"; env; sleep 60"),
                Map.of("NAME", "Nereid", "GREETING", "hello $(NAME) $$(NAME) $(UNKNOWN)"),
                List.of(),
                ALWAYS,
                null,
                null,
                null));
        until("a line", () -> logged("hello Nereid $(NAME) $(UNKNOWN) at 3"));
        until("the environment", () -> logged("NEREID_PROCESS="));

        assertThat(logged("of iris in ")).isTrue();
        assertThat(logs()).noneMatch(l -> l.contains("AWS_SECRET"));
    }

    @Test
    void mountPathsAreReplacedByRealOnes() throws Exception {
        Files.createDirectories(disk.resolve("models"));
        run(
                Component.PREDICTOR,
                ONE,
                List.of(Fakes.artifact("file:///models")),
                container(
                        List.of("sh", "-c"),
                        List.of("echo dir /mnt/models other /mnt/models2 env $WHERE; sleep 60"),
                        Map.of("WHERE", "/mnt/models/sub"),
                        List.of(),
                        ALWAYS,
                        null,
                        null,
                        null));

        String real = disk.resolve("models").toString();
        until("a line", () -> logged("dir " + real + " other /mnt/models2 env " + real + "/sub"));
    }

    @Test
    void aProcessThatEndsIsStartedAgainAtOnceAndThenFails() {
        run(shell("echo no such model; exit 3", NEVER));
        until("failed", () -> is(Phase.FAILED));

        var failure = java.util.Objects.requireNonNull(
                java.util.Objects.requireNonNull(state()).failure());
        assertThat(failure.exitCode()).isEqualTo(3);
        assertThat(failure.reason()).isEqualTo("ModelLoadFailed");
        assertThat(failure.message()).contains("exited with 3").contains("no such model");
        assertThat(logged("is restarted in 10 s")).isTrue();
        assertThat(routing.activator("iris-1").rejection).contains("no such model");
    }

    @Test
    void aMissingProgramIsReportedByName() {
        run(container(List.of("no-such-program"), List.of(), Map.of(), List.of(), null, null, null, null));
        until("failed", () -> is(Phase.FAILED));

        assertThat(java.util.Objects.requireNonNull(
                                java.util.Objects.requireNonNull(state()).failure())
                        .message())
                .contains("'no-such-program'")
                .contains("images are not run here");
    }

    @Test
    void aProcessThatIsNotReadyTakesNoRequests() {
        run(shell("echo up; sleep 60", NEVER));
        until("up", () -> logged("up"));

        assertThat(replicas()).isEmpty();
        assertThat(routing.activator("iris-1").capacity).isZero();
    }

    @Test
    void aProcessThatFailsItsLivenessProbeIsStartedAgain() {
        run(container(
                List.of("sh", "-c", "trap 'exit 0' TERM; echo begin; while true; do sleep 0.1; done"),
                List.of(),
                Map.of(),
                List.of(),
                ALWAYS,
                "{'exec':{'command':['false']},'periodSeconds':1,'failureThreshold':1}",
                null,
                null));
        until("stopped for it", () -> logged("liveness exec probe exited with 1"));
        until(
                "started again",
                () -> logs().stream().filter(l -> l.endsWith(" begin")).count() >= 2);
    }

    @Test
    void readinessWaitsForTheStartupProbe() throws Exception {
        Path flag = disk.resolve("flag");
        run(container(
                List.of("sleep", "60"),
                List.of(),
                Map.of(),
                List.of(),
                ALWAYS,
                null,
                "{'exec':{'command':['test','-e','" + flag + "']},'periodSeconds':1,'failureThreshold':30}",
                null));
        until("started", () -> logged("started as process"));
        assertThat(is(Phase.READY)).isFalse();

        Files.writeString(flag, "");
        until("ready", () -> is(Phase.READY));
    }

    @Test
    void grandchildrenEndWithTheService() throws Exception {
        Path pid = disk.resolve("pid");
        run(shell("(setsid sleep 300 & echo $! > " + pid + "); sleep 300", ALWAYS));
        until("a grandchild", () -> Files.exists(pid) && pid.toFile().length() > 1);
        until("ready", () -> is(Phase.READY));
        long number = Long.parseLong(Files.readString(pid).strip());
        assertThat(ProcessHandle.of(number)).isPresent();

        infrastructure.apply("default", "iris", plan(null));
        until("the end", () -> state() == null);

        until(
                "the grandchild's end",
                () -> ProcessHandle.of(number).filter(ProcessHandle::isAlive).isEmpty());
    }

    @Test
    void processesOfAnEarlierServerAreEndedAtTheStart() {
        run(shell("echo here; sleep 300", ALWAYS));
        until("ready", () -> is(Phase.READY));
        String line = logs().stream()
                .filter(l -> l.contains("started as process"))
                .findFirst()
                .orElseThrow();
        long number = Long.parseLong(line.replaceAll(".*started as process (\\d+):.*", "$1"));

        // As after a kill -9: the processes still run, and another server starts.
        ProcessSupervisor next = new ProcessSupervisor(disk.resolve("plane"));

        assertThat(next.killOrphans()).isPositive();
        until(
                "its end",
                () -> ProcessHandle.of(number).filter(ProcessHandle::isAlive).isEmpty());
    }

    @Test
    void aTransformerReceivesTheAddressOfThePredictor() {
        run(
                Component.TRANSFORMER,
                ONE,
                List.of(),
                container(
                        List.of("sh", "-c", "echo \"$@\"; sleep 60", "sh"),
                        List.of("--model_name", "mine"),
                        Map.of(),
                        List.of(),
                        ALWAYS,
                        null,
                        null,
                        null));

        until("its arguments", () -> logged("--model_name mine --predictor_host 127.0.0.1:4711 --http_port 31"));
    }

    @Test
    void tooMuchMemoryEndsAProcess() {
        python();
        assumeTrue(Files.exists(Path.of("/proc/self/statm")), "/proc does not report memory on this system");
        run(container(
                List.of("python3", "-c", "b = bytearray(200_000_000)\nimport time\ntime.sleep(60)"),
                List.of(),
                Map.of(),
                List.of(),
                ALWAYS,
                null,
                null,
                "{'limits':{'memory':'50Mi'}}"));

        until("its end", () -> logged("OOMKilled"));
    }

    @Test
    void aGrpcProbeOfAServerWithoutGrpcFails() {
        python();
        run(container(
                List.of("python3", "-m", "http.server", "$(PORT)", "--bind", "127.0.0.1"),
                List.of(),
                Map.of(),
                List.of(),
                "{'grpc':{'port':8080},'periodSeconds':1,'failureThreshold':1}",
                null,
                null,
                null));
        until("started", () -> logged("started as process"));
        until("asked", () -> logged("Bad request") || logged("code 400") || logged("code 505"));

        assertThat(is(Phase.READY)).isFalse();
    }
}
