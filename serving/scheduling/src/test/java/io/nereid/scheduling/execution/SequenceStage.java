// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.execution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.nereid.base.ServingException;
import io.nereid.scheduling.InitialStateFiles;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.Ledger;
import io.nereid.scheduling.Scheduler;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.SequencePuppet;
import io.nereid.scheduling.Turn;
import io.nereid.scheduling.sequence.SequenceBatcher;
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
public final class SequenceStage {
    public static final long IDLE = 1_000_000;
    public static final Strategy DIRECT = new Direct(Duration.ZERO, 0);

    public final ManualTime time = new ManualTime();
    public final DeviceExecutor pool = new DeviceExecutor("test", 0, time, time);
    public final Ledger ledger = new Ledger();
    public final SequencePuppet puppet = new SequencePuppet(ledger);
    public final List<Turn> turns = new ArrayList<>();
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
    public Turn turn(String text) {
        return turn(text, 1);
    }

    /** Creates the next request with this number of input elements. */
    public Turn turn(String text, int elements) {
        String[] parts = text.split(" ", 2);
        String flags = parts.length == 1 ? "" : parts[1];
        Object id = parts[0].matches("\\d+") ? (Object) Long.parseUnsignedLong(parts[0]) : parts[0];
        return turn(id, flags.contains("S"), flags.contains("E"), elements);
    }

    Turn turn(Object id, boolean start, boolean end, int elements) {
        int number = next++;
        int[] values = new int[elements];
        values[0] = number;
        Shape shape = maxBatch > 0 ? Shape.of(1, elements) : Shape.of(elements);
        Turn turn = new Turn(
                number, new InferenceRequest.SequenceFlags(id, start, end), List.of(ledger.ints("IN", shape, values)));
        turns.add(turn);
        return turn;
    }

    public Turn submit(Scheduler scheduler, String text) {
        return submit(scheduler, turn(text));
    }

    public Turn submit(Scheduler scheduler, Turn turn) {
        scheduler.submit(turn);
        return turn;
    }

    /** Submits a request that must be rejected, and returns the error. */
    public ServingException rejected(Scheduler scheduler, Turn turn) {
        Throwable e = catchThrowable(() -> scheduler.submit(turn));
        assertThat(e).isInstanceOf(ServingException.class);
        assertThat(turn.ends.get()).isZero();
        assertThat(turn.hasAction()).isFalse();
        turns.remove(turn);
        turn.drop();
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
        assertThat(turns).allMatch(t -> t.ends.get() == 1);
        assertThat(turns).noneMatch(Turn::hasAction);
        assertThat(batcher.queued()).isZero();
        assertThat(batcher.running()).isZero();
        assertThat(ledger.open()).isZero();
        assertThat(time.scheduled()).isZero();
    }
}
