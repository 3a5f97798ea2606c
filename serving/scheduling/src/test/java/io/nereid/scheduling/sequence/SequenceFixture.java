// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.nereid.base.ServingException;
import io.nereid.scheduling.InitialStateFiles;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.Scheduler;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.TensorCounter;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.ManualTime;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.SequenceBatching;
import io.nereid.spi.config.SequenceBatching.Direct;
import io.nereid.spi.config.SequenceBatching.Oldest;
import io.nereid.spi.config.SequenceBatching.Strategy;
import io.nereid.spi.config.SequenceControl;
import io.nereid.spi.config.SequenceStateConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** The fixture of sequence batcher tests: a manual clock, a pool and a runner. Confined to one thread. */
public final class SequenceFixture {
    public static final long IDLE = 1_000_000;
    public static final Strategy DIRECT = new Direct(Duration.ZERO, 0);

    public final ManualTime time = new ManualTime();
    public final DeviceExecutor pool = new DeviceExecutor("test", 0, time, time);
    public final TensorCounter tensors = new TensorCounter();
    public final SequencePuppet puppet = new SequencePuppet(tensors);
    public final List<FakeSequenceJob> requests = new ArrayList<>();
    public SchedulerOptions options = new SchedulerOptions(1_000, InlinePolicy.NEVER);
    public Strategy strategy = DIRECT;
    public List<SequenceControl> controls = List.of();
    public List<SequenceStateConfig> states = List.of();
    public List<TensorSpec> outputs = List.of(new TensorSpec("OUT", DataType.INT32, Shape.of(-1)));
    public InitialStateFiles files = InitialStateFiles.NONE;
    public boolean iterative;
    List<InstanceGroup> groups = List.of();
    public int maxBatch;
    public int instances = 1;
    private int next = 1;

    public static Oldest oldest(int candidates, long delay, Integer... preferred) {
        return new Oldest(candidates, List.of(preferred), Duration.ofNanos(delay), false);
    }

    public static SequenceControl control(SequenceControl.Kind kind) {
        DataType type = kind == SequenceControl.Kind.CORRID ? DataType.UINT64 : DataType.INT32;
        return new SequenceControl(kind.name(), kind, type, 0, 1);
    }

    public static List<SequenceControl> allControls() {
        List<SequenceControl> all = new ArrayList<>();
        for (SequenceControl.Kind kind : SequenceControl.Kind.values()) {
            all.add(control(kind));
        }
        return all;
    }

    public static SequenceStateConfig state(String name, long... dims) {
        return new SequenceStateConfig(name + "IN", name + "OUT", DataType.INT32, Shape.of(dims), null, false);
    }

    ModelConfig config() {
        return ModelConfig.builder("m")
                .maxBatchSize(maxBatch)
                .instanceGroups(groups.isEmpty() ? List.of(InstanceGroup.cpu("m", instances)) : groups)
                .inputs(List.of(new TensorSpec("IN", DataType.INT32, Shape.of(-1))))
                .outputs(outputs)
                .sequence(new SequenceBatching(strategy, Duration.ofNanos(IDLE), controls, states, iterative))
                .build();
    }

    public SequenceBatcher open() {
        return new SequenceBatcher(config(), puppet, pool, options, files);
    }

    /** Creates the next request: {@code "7 S"} starts sequence 7, {@code "7 E"} ends it, {@code "7"} continues it. */
    public FakeSequenceJob request(String text) {
        return request(text, 1);
    }

    /** Creates the next request with this number of input elements. */
    public FakeSequenceJob request(String text, int elements) {
        String[] parts = text.split(" ", 2);
        String flags = parts.length == 1 ? "" : parts[1];
        Object id = parts[0].matches("\\d+") ? (Object) Long.parseUnsignedLong(parts[0]) : parts[0];
        return request(id, flags.contains("S"), flags.contains("E"), elements);
    }

    FakeSequenceJob request(Object id, boolean start, boolean end, int elements) {
        int number = next++;
        int[] values = new int[elements];
        values[0] = number;
        Shape shape = maxBatch > 0 ? Shape.of(1, elements) : Shape.of(elements);
        FakeSequenceJob request = new FakeSequenceJob(
                number, new InferenceRequest.SequenceFlags(id, start, end), List.of(tensors.ints("IN", shape, values)));
        requests.add(request);
        return request;
    }

    public FakeSequenceJob submit(Scheduler scheduler, String text) {
        return submit(scheduler, request(text));
    }

    public FakeSequenceJob submit(Scheduler scheduler, FakeSequenceJob request) {
        scheduler.submit(request);
        return request;
    }

    /** Submits a request that must be rejected, and returns the error. */
    public ServingException rejected(Scheduler scheduler, FakeSequenceJob request) {
        Throwable e = catchThrowable(() -> scheduler.submit(request));
        assertThat(e).isInstanceOf(ServingException.class);
        assertThat(request.ends.get()).isZero();
        assertThat(request.hasAction()).isFalse();
        requests.remove(request);
        request.drop();
        return (ServingException) e;
    }

    public boolean runOne() {
        boolean ran = pool.runNext();
        assertThat(puppet.trouble).isEmpty();
        return ran;
    }

    public void runAll() {
        for (int i = 0; runOne(); i++) {
            assertThat(i).isLessThan(10_000);
        }
    }

    public List<List<String>> ran() {
        return puppet.ran;
    }

    /** Closes the batcher and checks that every job has ended once and no tensor is left. */
    public void end(SequenceBatcher batcher) {
        batcher.close();
        runAll();
        assertThat(batcher.drained().toCompletableFuture()).isCompleted();
        assertThat(requests).allMatch(t -> t.ends.get() == 1);
        assertThat(requests).noneMatch(FakeSequenceJob::hasAction);
        assertThat(batcher.queued()).isZero();
        assertThat(batcher.running()).isZero();
        assertThat(tensors.open()).isZero();
        assertThat(time.scheduled()).isZero();
    }
}
