// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import static io.nereid.control.local.workload.Fakes.ONE;
import static io.nereid.control.local.workload.Fakes.plan;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.control.core.ObservedState.Phase;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.Workload.ProcessContainer;
import io.nereid.control.core.Workload.Scaling;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.local.spi.LocalGpu;
import io.nereid.control.local.workload.Fakes;
import io.nereid.control.local.workload.Fakes.FakeArtifacts;
import io.nereid.control.local.workload.Fakes.FakeComponents;
import io.nereid.control.local.workload.Fakes.FakeEngine;
import io.nereid.control.local.workload.Fakes.FakeLoop;
import io.nereid.control.local.workload.Fakes.FakeRouting;
import io.nereid.control.plane.loop.EventLoop;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Limits of GPUs on one machine: models in the engine, and real child processes. */
class GpuLimitsTest {
    @TempDir
    Path disk;

    private final List<LocalGpu> gpus = new ArrayList<>(List.of(
            new LocalGpu(0, "GPU-a", "Simulated GPU 24G"),
            new LocalGpu(1, "GPU-b", "Simulated GPU 8G"),
            new LocalGpu(2, "MIG-c", "Simulated GPU 24G MIG 1g.5gb")));

    private final FakeEngine engine = new FakeEngine();
    private final FakeArtifacts artifacts = new FakeArtifacts();
    private final FakeRouting routing = new FakeRouting();

    private LocalInfrastructure infrastructure(EventLoop loop) {
        LocalInfrastructure made = new LocalInfrastructure(
                Fakes.settings(disk.resolve("plane")).withGpus(() -> List.copyOf(gpus)),
                engine.models,
                artifacts,
                new FakeComponents(),
                routing,
                loop);
        engine.listener = made::modelState;
        made.start();
        artifacts.paths.put("s3://models/iris", Fakes.sklearnModel(disk.resolve("model")));
        return made;
    }

    private static ObjectNode limit(String resource, int count) {
        ObjectNode resources = JsonNodeFactory.instance.objectNode();
        resources.putObject("limits").put(resource, count);
        return resources;
    }

    private static Workload workload(String service, String revision, Workload.Form form, Scaling scaling) {
        Workload of = Fakes.workload(revision, Component.PREDICTOR, form, scaling);
        return new Workload(
                of.namespace(),
                service,
                of.component(),
                revision,
                service,
                form,
                of.scaling(),
                of.containerConcurrency(),
                of.timeout(),
                of.logger(),
                of.batcher(),
                of.labels(),
                of.annotations());
    }

    private static Workload model(String service, String revision, String resource, int count) {
        Workload.Model usual = (Workload.Model) Fakes.model(revision, ONE).form();
        return workload(
                service,
                revision,
                new Workload.Model(
                        usual.artifacts(),
                        usual.format(),
                        null,
                        usual.protocol(),
                        usual.runtime(),
                        usual.arguments(),
                        usual.environment(),
                        limit(resource, count)),
                ONE);
    }

    private static WorkloadState state(LocalInfrastructure of, String service, String revision) {
        return Objects.requireNonNull(of.observe("default", service).get(revision), revision);
    }

    private static String reason(LocalInfrastructure of, String service, String revision) {
        return Objects.requireNonNull(state(of, service, revision).failure()).message();
    }

    @Test
    void aModelHasGpusThatNoOtherServiceHas() {
        FakeLoop loop = new FakeLoop();
        LocalInfrastructure of = infrastructure(loop);
        of.apply("default", "iris", plan(null, model("iris", "iris-1", "nvidia.com/gpu", 1)));
        loop.run();
        assertThat(of.logs("default", "iris-1", 100))
                .anyMatch(line -> line.contains("the model has the GPUs GPU-a"))
                .noneMatch(line -> line.contains("are not enforced"));
        of.apply("default", "rose", plan(null, model("rose", "rose-1", "nvidia.com/gpu", 2)));
        loop.run();
        assertThat(state(of, "rose", "rose-1").phase()).isEqualTo(Phase.FAILED);
        assertThat(reason(of, "rose", "rose-1"))
                .contains(
                        "the service needs 2 of nvidia.com/gpu, and 1 of 2 are free: the others belong to default/iris");

        // A new revision has the GPU of the old one only when no other is left.
        of.apply(
                "default",
                "iris",
                plan(null, model("iris", "iris-1", "nvidia.com/gpu", 1), model("iris", "iris-2", "nvidia.com/gpu", 2)));
        loop.run();
        assertThat(state(of, "iris", "iris-2").phase()).isEqualTo(Phase.READY);

        // The GPUs of a service that is gone are those of the one that waits.
        of.apply("default", "iris", plan(null));
        loop.seconds(12);
        assertThat(state(of, "rose", "rose-1").phase()).isEqualTo(Phase.READY);
        assertThat(of.logs("default", "rose-1", 100)).anyMatch(line -> line.contains("the GPUs GPU-a,GPU-b"));
        of.apply("default", "rose", plan(null));
        loop.seconds(2);
    }

    @Test
    void moreGpusThanTheMachineHasAreRefusedWithTheFigures() {
        FakeLoop loop = new FakeLoop();
        LocalInfrastructure of = infrastructure(loop);
        of.apply("default", "iris", plan(null, model("iris", "iris-1", "nvidia.com/gpu", 3)));
        of.apply("default", "rose", plan(null, model("rose", "rose-1", "nvidia.com/mig-1g.5gb", 1)));
        of.apply("default", "lily", plan(null, model("lily", "lily-1", "nvidia.com/mig-2g.10gb", 1)));
        loop.run();
        assertThat(reason(of, "iris", "iris-1"))
                .contains(
                        "the service needs 3 of nvidia.com/gpu, and this machine has 2; its GPUs are Simulated GPU 24G")
                .contains("lower the limit");
        assertThat(of.logs("default", "rose-1", 100)).anyMatch(line -> line.contains("the model has the GPUs MIG-c"));
        assertThat(reason(of, "lily", "lily-1")).contains("1 of nvidia.com/mig-2g.10gb, and this machine has 0;");
        gpus.clear();
        of.apply("default", "tulip", plan(null, model("tulip", "tulip-1", "nvidia.com/gpu", 1)));
        loop.run();
        assertThat(reason(of, "tulip", "tulip-1"))
                .contains("this machine has 0 (remove the limit, or use a machine with GPUs and the plugin cuda)");
        for (String service : List.of("iris", "rose", "lily", "tulip")) {
            of.apply("default", service, plan(null));
        }
        loop.seconds(2);
    }

    private static Workload shell(String service, int gpus, int replicas, Map<String, String> environment) {
        String script = "echo sees $CUDA_VISIBLE_DEVICES; exec sleep 600 # $(PORT)";
        ProcessContainer container = new ProcessContainer(
                "kserve-container",
                List.of("sh", "-c", script),
                List.of(),
                environment,
                List.of(),
                null,
                List.of(),
                Fakes.tree("{\"exec\":{\"command\":[\"true\"]}}"),
                null,
                null,
                limit("nvidia.com/gpu", gpus));
        return workload(
                service,
                service + "-1",
                new Workload.Process(List.of(), List.of(container)),
                new Scaling(replicas, replicas, "concurrency", null, "kpa", Map.of()));
    }

    private static void until(String what, BooleanSupplier condition) {
        long end = Clock.system().nanos() + Duration.ofSeconds(60).toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(Clock.system().nanos() - end).as("%s within 60 s", what).isNegative();
            LockSupport.parkNanos(5_000_000);
        }
    }

    private static boolean logged(LocalInfrastructure of, String revision, String text) {
        return of.logs("default", revision, 1000).stream().anyMatch(line -> line.contains(text));
    }

    @Test
    void eachReplicaOfAProcessSeesGpusOfItsOwn() {
        LocalInfrastructure of = infrastructure(EventLoop.threads(Clock.system()));
        try {
            of.apply("default", "iris", plan(null, shell("iris", 1, 2, Map.of())));
            until("both", () -> logged(of, "iris-1", "sees GPU-a") && logged(of, "iris-1", "sees GPU-b"));
            of.apply("default", "rose", plan(null, shell("rose", 1, 1, Map.of())));
            until("refused", () -> logged(of, "rose-1", "0 of 2 are free: the others belong to default/iris"));
            of.apply("default", "lily", plan(null, shell("lily", 1, 1, Map.of("CUDA_VISIBLE_DEVICES", "0"))));
            until("refused", () -> logged(of, "lily-1", "sets CUDA_VISIBLE_DEVICES to '0' (expected: one of them)"));
        } finally {
            of.close();
        }
    }
}
