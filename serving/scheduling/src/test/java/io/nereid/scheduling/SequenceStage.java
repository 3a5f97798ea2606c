// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.nereid.base.ServingException;
import io.nereid.scheduling.SchedulerOptions.Inline;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelConfig.Control;
import io.nereid.spi.ModelConfig.InstanceGroup;
import io.nereid.spi.ModelConfig.Sequence;
import io.nereid.spi.ModelConfig.Sequence.Direct;
import io.nereid.spi.ModelConfig.Sequence.Oldest;
import io.nereid.spi.ModelConfig.Sequence.Strategy;
import io.nereid.spi.ModelConfig.State;
import io.nereid.spi.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** Everything a test of the sequence batcher needs, on a clock of its own. Confined to one thread. */
final class SequenceStage {
    static final long IDLE = 1_000_000;
    static final Strategy DIRECT = new Direct(Duration.ZERO, 0);

    final ManualTime time = new ManualTime();
    final DevicePool pool = new DevicePool("test", 0, time, time);
    final Ledger ledger = new Ledger();
    final SequencePuppet puppet = new SequencePuppet(ledger);
    final List<Turn> turns = new ArrayList<>();
    SchedulerOptions options = new SchedulerOptions(1_000, Inline.NEVER);
    Strategy strategy = DIRECT;
    List<Control> controls = List.of();
    List<State> states = List.of();
    List<TensorSpec> outputs = List.of(new TensorSpec("OUT", DataType.INT32, Shape.of(-1)));
    InitialStates files = InitialStates.NONE;
    boolean iterative;
    List<InstanceGroup> groups = List.of();
    int maxBatch;
    int instances = 1;
    private int next = 1;

    static Oldest oldest(int candidates, long delay, Integer... preferred) {
        return new Oldest(candidates, List.of(preferred), Duration.ofNanos(delay), false);
    }

    static Control control(Control.Kind kind) {
        DataType type = kind == Control.Kind.CORRID ? DataType.UINT64 : DataType.INT32;
        return new Control(kind.name(), kind, type, 0, 1);
    }

    static List<Control> allControls() {
        List<Control> all = new ArrayList<>();
        for (Control.Kind kind : Control.Kind.values()) {
            all.add(control(kind));
        }
        return all;
    }

    static State state(String name, long... dims) {
        return new State(name + "IN", name + "OUT", DataType.INT32, Shape.of(dims), null, false);
    }

    ModelConfig config() {
        return ModelConfig.builder("m")
                .maxBatchSize(maxBatch)
                .instanceGroups(groups.isEmpty() ? List.of(InstanceGroup.cpu("m", instances)) : groups)
                .inputs(List.of(new TensorSpec("IN", DataType.INT32, Shape.of(-1))))
                .outputs(outputs)
                .sequence(new Sequence(strategy, Duration.ofNanos(IDLE), controls, states, iterative))
                .build();
    }

    SequenceBatcher open() {
        return new SequenceBatcher(config(), puppet, pool, options, files);
    }

    /** The next request: {@code "7 S"} starts sequence 7, {@code "7 E"} ends it, {@code "7"} goes on with it. */
    Turn turn(String text) {
        return turn(text, 1);
    }

    /** The same with so many elements in its input. */
    Turn turn(String text, int elements) {
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
                number, new InferenceRequest.Sequence(id, start, end), List.of(ledger.ints("IN", shape, values)));
        turns.add(turn);
        return turn;
    }

    Turn submit(Scheduler scheduler, String text) {
        return submit(scheduler, turn(text));
    }

    Turn submit(Scheduler scheduler, Turn turn) {
        scheduler.submit(turn);
        return turn;
    }

    /** Submits what must be refused. */
    ServingException refused(Scheduler scheduler, Turn turn) {
        Throwable e = catchThrowable(() -> scheduler.submit(turn));
        assertThat(e).isInstanceOf(ServingException.class);
        assertThat(turn.ends.get()).isZero();
        assertThat(turn.hasAction()).isFalse();
        turns.remove(turn);
        turn.drop();
        return (ServingException) e;
    }

    boolean runOne() {
        boolean ran = pool.runNext();
        assertThat(puppet.trouble).isEmpty();
        return ran;
    }

    void runAll() {
        for (int i = 0; runOne(); i++) {
            assertThat(i).isLessThan(10_000);
        }
    }

    List<List<String>> ran() {
        return puppet.ran;
    }

    /** Closes the batcher; everything must have ended once, and nothing may be left. */
    void end(SequenceBatcher batcher) {
        batcher.close();
        runAll();
        assertThat(batcher.drained().toCompletableFuture()).isCompleted();
        assertThat(turns).allMatch(t -> t.ends.get() == 1);
        assertThat(turns).noneMatch(Turn::hasAction);
        assertThat(batcher.queued()).isZero();
        assertThat(batcher.running()).isZero();
        assertThat(ledger.open()).isZero();
        assertThat(time.alarms()).isZero();
    }
}
