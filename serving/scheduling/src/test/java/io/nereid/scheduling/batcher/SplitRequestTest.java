// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.FakeJob;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.Scheduler;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.TensorCounter;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.ManualTime;
import io.nereid.scheduling.execution.RateLimiter;
import io.nereid.scheduling.factory.SchedulerFactory;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.BatchSizePolicy;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.QueuePolicy;
import io.nereid.spi.config.QueuePolicy.TimeoutAction;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Split requests, and the maximum number of enqueued batches. */
class SplitRequestTest {
    private final ManualTime time = new ManualTime();
    private final DeviceExecutor pool = new DeviceExecutor("test", 0, time, time);
    private final DoublingRunner runner = new DoublingRunner();
    private final TensorCounter tensors = new TensorCounter();

    @AfterEach
    void nothingLeaks() {
        assertThat(runner.trouble).isEmpty();
        assertThat(tensors.open()).as("inputs that were not freed").isZero();
    }

    private Scheduler batcher(
            int maxBatch, long delay, boolean ordered, BatchSizePolicy fit, InlinePolicy inline, Integer... preferred) {
        ModelConfig config = ModelConfig.builder("m")
                .maxBatchSize(maxBatch)
                .batching(new DynamicBatching(List.of(preferred), Duration.ofNanos(delay), ordered)
                        .withBatchSizePolicy(fit))
                .instances(1)
                .build();
        return SchedulerFactory.create(config, runner, pool, new SchedulerOptions(1_000, inline));
    }

    private Scheduler splitting(int maxBatch, int maxRequest) {
        return batcher(maxBatch, 0, false, new BatchSizePolicy(List.of(), false, maxRequest, 0), InlinePolicy.NEVER);
    }

    private Scheduler bounded(int maxBatch, int maxEnqueued) {
        return batcher(maxBatch, 0, false, new BatchSizePolicy(List.of(), false, 0, maxEnqueued), InlinePolicy.NEVER);
    }

    private FakeJob job(int number, int rows, int columns) {
        FakeJob job = new FakeJob(number, rows, 0, Long.MAX_VALUE);
        return fill(job, columns);
    }

    private FakeJob fill(FakeJob job, int columns) {
        int[] values = IntStream.range(0, job.rows * columns)
                .map(i -> job.number * 1_000 + i)
                .toArray();
        job.inputs = List.of(tensors.ints("x", Shape.of(job.rows, columns), values));
        job.keepsOutputs = true;
        return job;
    }

    private void runAll() {
        while (pool.runNext()) {
            assertThat(runner.ran).hasSizeLessThan(10_000);
        }
    }

    private static void expectDoubled(FakeJob job) {
        List<Tensor> outputs = job.outputs;
        assertThat(job.error).isNull();
        assertThat(outputs).isNotNull().hasSize(1);
        if (outputs == null) {
            return;
        }
        Tensor out = outputs.get(0);
        assertThat(out.name()).isEqualTo("of_x");
        assertThat(out.shape().dim(0)).isEqualTo(job.rows);
        int[] values = new int[out.byteLength() / 4];
        out.buffer().asIntBuffer().get(values);
        assertThat(values)
                .containsExactly(IntStream.range(0, values.length)
                        .map(i -> 2 * (job.number * 1_000 + i))
                        .toArray());
        Tensor.closeAll(outputs);
    }

    private static ServingException rejected(Scheduler scheduler, FakeJob job) {
        try {
            scheduler.submit(job);
        } catch (ServingException e) {
            assertThat(job.ends).hasValue(0);
            assertThat(job.hasAction()).isFalse();
            Tensor.closeAll(job.inputs);
            return e;
        }
        throw new AssertionError(job + " was taken");
    }

    // Split requests.

    @Test
    void aRequestLargerThanABatchRunsInPiecesAndHasOneResponse() {
        Scheduler s = splitting(4, 100);
        FakeJob big = job(1, 10, 3);
        s.submit(big);
        assertThat(s.queued()).isEqualTo(1);
        runAll();
        assertThat(runner.ran).containsExactly("1:4", "1:4", "1:2");
        assertThat(runner.cuts)
                .containsExactly(BatchCloseReason.MAX_SIZE, BatchCloseReason.MAX_SIZE, BatchCloseReason.NO_MORE);
        expectDoubled(big);
        assertThat(big.ends).hasValue(1);
        assertThat(big.runs).as("run times of all pieces are counted").isEqualTo(3);
        assertThat(big.hasAction()).isFalse();
        assertThat(s.queued()).isZero();
    }

    @Test
    void piecesFillTheRoomThatOthersLeaveAndLeaveRoomToOthers() {
        Scheduler s = splitting(4, 100);
        FakeJob small = job(1, 3, 2);
        FakeJob big = job(2, 6, 2);
        FakeJob next = job(3, 2, 2);
        s.submit(small);
        s.submit(big);
        s.submit(next);
        runAll();
        assertThat(runner.ran).containsExactly("1:3 2:1", "2:4", "2:1 3:2");
        expectDoubled(small);
        expectDoubled(big);
        expectDoubled(next);
    }

    @Test
    void aRequestThatFitsIntoABatchIsNeverSplit() {
        Scheduler s = splitting(4, 100);
        FakeJob a = job(1, 3, 1);
        FakeJob b = job(2, 4, 1);
        s.submit(a);
        s.submit(b);
        runAll();
        assertThat(runner.ran).containsExactly("1:3", "2:4");
        expectDoubled(a);
        expectDoubled(b);
    }

    @Test
    void aLargeRequestOfAnotherShapeDoesNotJoin() {
        Scheduler s = splitting(4, 100);
        FakeJob a = job(1, 1, 1);
        FakeJob b = job(2, 5, 2);
        s.submit(a);
        s.submit(b);
        runAll();
        assertThat(runner.ran).containsExactly("1:1", "2:4", "2:1");
        expectDoubled(a);
        expectDoubled(b);
    }

    @Test
    void piecesAreAsLargeAsTheLargestPreferredSize() {
        Scheduler s = batcher(8, 100, false, new BatchSizePolicy(List.of(), false, 100, 0), InlinePolicy.NEVER, 2, 4);
        FakeJob a = job(1, 3, 1);
        FakeJob big = job(2, 10, 1);
        s.submit(a);
        s.submit(big);
        runAll();
        assertThat(runner.ran).containsExactly("1:3 2:1", "2:4", "2:4");
        assertThat(s.queued()).as("the last row waits for other jobs").isEqualTo(1);
        time.advance(100);
        runAll();
        assertThat(runner.ran).hasSize(4).last().isEqualTo("2:1");
        expectDoubled(a);
        expectDoubled(big);
    }

    @Test
    void aModelOfSingleRowsGetsThemOneByOne() {
        Scheduler s = splitting(1, 5);
        FakeJob big = job(1, 3, 2);
        s.submit(big);
        runAll();
        assertThat(runner.ran).containsExactly("1:1", "1:1", "1:1");
        expectDoubled(big);
    }

    @Test
    void textsAreCutBetweenRows() {
        Scheduler s = splitting(2, 100);
        FakeJob big = new FakeJob(1, 3, 0, Long.MAX_VALUE);
        big.keepsOutputs = true;
        big.inputs = List.of(texts(Shape.of(3, 2), "a", "", "ccc", "dd", "e", "ffff"));
        s.submit(big);
        runAll();
        assertThat(runner.ran).containsExactly("1:2", "1:1");
        List<Tensor> out = big.outputs;
        if (out == null) {
            throw new AssertionError("no answer but " + big.error);
        }
        assertThat(out.get(0).shape()).isEqualTo(Shape.of(3, 2));
        List<String> values = new ArrayList<>();
        ByteBuffer bytes = out.get(0).buffer();
        while (bytes.hasRemaining()) {
            byte[] text = new byte[bytes.getInt()];
            bytes.get(text);
            values.add(new String(text, StandardCharsets.UTF_8));
        }
        assertThat(values).containsExactly("a", "", "ccc", "dd", "e", "ffff");
        Tensor.closeAll(out);
    }

    private static Tensor texts(Shape shape, String... values) {
        ByteBuffer bytes = ByteBuffer.allocate(100).order(ByteOrder.LITTLE_ENDIAN);
        for (String v : values) {
            bytes.putInt(v.length()).put(v.getBytes(StandardCharsets.UTF_8));
        }
        MemoryRegion region = MemoryRegion.copyOf(bytes.array(), 0, bytes.position());
        return Tensor.over("x", DataType.BYTES, shape, region, 0, bytes.position());
    }

    @Test
    void aRequestBeyondTheLimitIsRejectedWithTritonsMessage() {
        Scheduler s = splitting(4, 10);
        assertThatThrownBy(() -> {
                    throw rejected(s, job(1, 11, 1));
                })
                .hasMessageContaining("Task size 11 is larger than maximum input batch size 10")
                .extracting(e -> e instanceof ServingException x ? x.code() : null)
                .isEqualTo(ErrorCode.INVALID_ARGUMENT);
    }

    @Test
    void piecesRunOnSeveralInstancesAtOnce() {
        ModelConfig config = ModelConfig.builder("m")
                .maxBatchSize(2)
                .batching(DynamicBatching.EAGER.withBatchSizePolicy(new BatchSizePolicy(List.of(), false, 100, 0)))
                .instances(3)
                .build();
        Scheduler s = SchedulerFactory.create(config, runner, pool, new SchedulerOptions(100, InlinePolicy.NEVER));
        FakeJob big = job(1, 6, 2);
        s.submit(big);
        List<Integer> running = new ArrayList<>();
        runner.during = () -> {
            runner.during = () -> {
                running.add(s.running());
                pool.runNext();
            };
            pool.runNext();
        };
        runAll();
        assertThat(running).containsExactly(2);
        assertThat(runner.ran).containsExactly("1:2", "1:2", "1:2");
        expectDoubled(big);
    }

    @Test
    void oneFailedPieceFailsTheRequestOnceAndTheRestNeverRuns() {
        Scheduler s = splitting(4, 100);
        runner.failure = ServingException.internal("broken", new IllegalStateException());
        runner.failAt = 1;
        FakeJob big = job(1, 20, 1);
        FakeJob next = job(2, 1, 1);
        List<Integer> waiting = new ArrayList<>();
        big.onEnd = j -> waiting.add(s.queued());
        s.submit(big);
        s.submit(next);
        runAll();
        assertThat(runner.ran).containsExactly("1:4", "1:4", "2:1");
        assertThat(waiting).as("its remaining rows have left the queue").containsExactly(1);
        assertThat(big.ends).hasValue(1);
        assertThat(big.code).isEqualTo(ErrorCode.INTERNAL);
        assertThat(big.hasAction()).isFalse();
        expectDoubled(next);
        s.close();
        assertThat(s.drained().toCompletableFuture()).isCompleted();
    }

    @Test
    void aRunnerThatThrowsFailsTheWholeRequestOnce() {
        BatchRunner broken = new BatchRunner() {
            @Override
            public void run(int instance, List<InferenceJob> jobs, BatchCloseReason cut) {
                throw new IllegalStateException("broken");
            }

            @Override
            public boolean joinable(InferenceJob a, InferenceJob b) {
                return true;
            }
        };
        ModelConfig config = ModelConfig.builder("m")
                .maxBatchSize(2)
                .batching(DynamicBatching.EAGER.withBatchSizePolicy(new BatchSizePolicy(List.of(), false, 100, 0)))
                .instances(1)
                .build();
        Scheduler s = SchedulerFactory.create(config, broken, pool, new SchedulerOptions(100, InlinePolicy.NEVER));
        FakeJob big = job(1, 6, 2);
        s.submit(big);
        runAll();
        assertThat(big.ends).hasValue(1);
        assertThat(big.code).isEqualTo(ErrorCode.INTERNAL);
        assertThat(s.queued()).isZero();
    }

    @Test
    void aDeadlineThatPassesBetweenPiecesFailsTheRequestOnce() {
        Scheduler s = splitting(4, 100);
        FakeJob big = fill(new FakeJob(1, 12, 0, time.nanos() + 100), 1);
        s.submit(big);
        runner.during = () -> time.spend(200);
        runAll();
        assertThat(runner.ran).containsExactly("1:4");
        assertThat(big.ends).hasValue(1);
        assertThat(big.code).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
        assertThat(s.queued()).isZero();
    }

    @Test
    void aClientThatCancelsBetweenPiecesIsNotifiedOnceAndStopsTheRun() {
        Scheduler s = splitting(4, 100);
        FakeJob big = job(1, 12, 1);
        s.submit(big);
        runner.during = () -> {
            big.cancel();
            assertThat(big.code).isEqualTo(ErrorCode.CANCELLED);
            assertThat(s.queued()).isZero();
        };
        runAll();
        assertThat(runner.ran).containsExactly("1:4");
        assertThat(big.ends).hasValue(1);
    }

    @Test
    void theRunOfAPieceHearsThatItsClientHasGone() {
        List<String> actions = new ArrayList<>();
        BatchRunner listening = new BatchRunner() {
            @Override
            public void run(int instance, List<InferenceJob> jobs, BatchCloseReason cut) {
                jobs.get(0).onCancel(() -> actions.add("cancelled"));
                runner.during.run();
                runner.run(instance, jobs, cut);
            }

            @Override
            public boolean joinable(InferenceJob a, InferenceJob b) {
                return true;
            }
        };
        ModelConfig config = ModelConfig.builder("m")
                .maxBatchSize(4)
                .batching(DynamicBatching.EAGER.withBatchSizePolicy(new BatchSizePolicy(List.of(), false, 100, 0)))
                .instances(1)
                .build();
        Scheduler s = SchedulerFactory.create(config, listening, pool, new SchedulerOptions(100, InlinePolicy.NEVER));
        FakeJob big = job(1, 8, 1);
        s.submit(big);
        pool.runNext();
        assertThat(actions).isEmpty();
        runner.during = big::cancel;
        runAll();
        assertThat(actions).as("the last piece was running").containsExactly("cancelled");
        assertThat(big.ends).hasValue(1);
        if (big.outputs != null) {
            Tensor.closeAll(big.outputs);
        }
    }

    @Test
    void orderedResponsesWaitForTheWholeOfALargeRequest() {
        Scheduler s = batcher(4, 0, true, new BatchSizePolicy(List.of(), false, 100, 0), InlinePolicy.NEVER);
        List<Integer> left = new ArrayList<>();
        FakeJob big = job(1, 6, 1);
        FakeJob small = job(2, 2, 1);
        FakeJob last = job(3, 5, 1);
        for (FakeJob j : List.of(big, small, last)) {
            j.onEnd = e -> left.add(e.number);
            s.submit(j);
        }
        runAll();
        assertThat(runner.ran).containsExactly("1:4", "1:2 2:2", "3:4", "3:1");
        assertThat(left).containsExactly(1, 2, 3);
        expectDoubled(big);
        expectDoubled(small);
        expectDoubled(last);
    }

    @Test
    void aTinyModelAlsoRunsLargeRequestsInPieces() {
        Scheduler s = batcher(4, 0, false, new BatchSizePolicy(List.of(), false, 100, 0), InlinePolicy.ALWAYS);
        FakeJob big = job(1, 6, 1);
        s.submit(big);
        runAll();
        assertThat(runner.ran).containsExactly("1:4", "1:2");
        expectDoubled(big);
    }

    @Test
    void whatWaitsOfALargeRequestEndsWithThePool() {
        Scheduler s = splitting(4, 100);
        pool.close();
        FakeJob big = job(1, 12, 1);
        s.submit(big);
        assertThat(big.ends).hasValue(1);
        assertThat(big.code).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(s.queued()).isZero();
    }

    @Test
    void aMoreUrgentRequestGoesBetweenThePiecesOfALargeOne() {
        ModelConfig config = ModelConfig.builder("m")
                .maxBatchSize(4)
                .batching(new DynamicBatching(List.of(), Duration.ZERO, false, 2, 2, Map.of())
                        .withBatchSizePolicy(new BatchSizePolicy(List.of(), false, 100, 0)))
                .instances(1)
                .build();
        Scheduler s = SchedulerFactory.create(config, runner, pool, new SchedulerOptions(100, InlinePolicy.NEVER));
        FakeJob big = job(1, 9, 1);
        FakeJob urgent = job(2, 3, 1).priority(1);
        s.submit(big);
        runner.during = () -> s.submit(urgent);
        runAll();
        assertThat(runner.ran).containsExactly("1:4", "2:3 1:1", "1:4");
        expectDoubled(big);
        expectDoubled(urgent);
    }

    @Test
    void aLargeRequestThatWaitedTooLongGoesBehindOthersWithItsRest() {
        ModelConfig config = ModelConfig.builder("m")
                .maxBatchSize(4)
                .queue(new QueuePolicy(0, Duration.ofNanos(100), true, TimeoutAction.DELAY))
                .batching(DynamicBatching.EAGER.withBatchSizePolicy(new BatchSizePolicy(List.of(), false, 100, 0)))
                .instances(1)
                .build();
        Scheduler s = SchedulerFactory.create(config, runner, pool, new SchedulerOptions(100, InlinePolicy.NEVER));
        FakeJob big = job(1, 9, 1);
        FakeJob other = job(2, 3, 1);
        s.submit(big);
        runner.during = () -> {
            time.spend(150);
            s.submit(other);
        };
        runAll();
        assertThat(runner.ran).containsExactly("1:4", "2:3 1:1", "1:4");
        expectDoubled(big);
        expectDoubled(other);
    }

    @Test
    void aLargeRequestThatMayNotWaitLongerIsRejectedOnceWithItsRest() {
        ModelConfig config = ModelConfig.builder("m")
                .maxBatchSize(4)
                .queue(new QueuePolicy(0, Duration.ofNanos(100), true))
                .batching(DynamicBatching.EAGER.withBatchSizePolicy(new BatchSizePolicy(List.of(), false, 100, 0)))
                .instances(1)
                .build();
        Scheduler s = SchedulerFactory.create(config, runner, pool, new SchedulerOptions(100, InlinePolicy.NEVER));
        FakeJob big = job(1, 9, 1);
        s.submit(big);
        runner.during = () -> time.advance(150);
        runAll();
        assertThat(runner.ran).containsExactly("1:4");
        assertThat(big.code).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(big.ends).hasValue(1);
    }

    @Test
    void theRestOfALargeRequestWaitsNoLongerThanTheRequestItself() {
        Scheduler s = batcher(4, 100, false, new BatchSizePolicy(List.of(), false, 100, 0), InlinePolicy.NEVER);
        FakeJob big = job(1, 5, 1);
        s.submit(big);
        runner.during = () -> time.spend(60);
        runAll();
        assertThat(runner.ran).containsExactly("1:4");
        time.advance(39);
        runAll();
        assertThat(runner.ran).hasSize(1);
        time.advance(1);
        runAll();
        assertThat(runner.ran).containsExactly("1:4", "1:1");
        assertThat(runner.cuts).containsExactly(BatchCloseReason.MAX_SIZE, BatchCloseReason.DELAY);
        expectDoubled(big);
    }

    @Test
    void aLargeRequestUnderARateLimiterTakesTurnsPieceByPiece() {
        RateLimiter limiter = new RateLimiter(List.of());
        ModelConfig config = ModelConfig.builder("m")
                .maxBatchSize(4)
                .batching(DynamicBatching.EAGER.withBatchSizePolicy(new BatchSizePolicy(List.of(), false, 100, 0)))
                .instances(1)
                .build();
        Scheduler s = SchedulerFactory.create(
                config, runner, pool, new SchedulerOptions(100, InlinePolicy.NEVER).withLimiter(limiter));
        FakeJob big = job(1, 9, 1);
        s.submit(big);
        runAll();
        assertThat(runner.ran).containsExactly("1:4", "1:4", "1:1");
        expectDoubled(big);
    }

    // The maximum number of enqueued batches.

    @Test
    void rejectsAtOnceWhatWouldMakeOneBatchTooMany() {
        Scheduler s = bounded(2, 2);
        for (int i = 1; i <= 4; i++) {
            s.submit(FakeJob.of(i));
        }
        ServingException e = rejected(s, FakeJob.of(5));
        assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(e.getMessage())
                .endsWith("The batch scheduling queue to which this task was submitted is full; currently 2 batches"
                        + " enqueued and max_enqueued_batches is 2");
        pool.runNext();
        assertThat(runner.ran).isNotEmpty();
        runAll();
        s.submit(FakeJob.of(6));
        runAll();
        assertThat(runner.ran).containsExactly("1:1 2:1", "3:1 4:1", "6:1");
    }

    @Test
    void theOpenBatchTakesWhatStillFitsThoughTheQueueIsFull() {
        Scheduler s = bounded(4, 2);
        s.submit(FakeJob.rows(1, 3));
        s.submit(FakeJob.rows(2, 3));
        assertThat(rejected(s, FakeJob.rows(3, 2)).code()).isEqualTo(ErrorCode.UNAVAILABLE);
        s.submit(FakeJob.rows(4, 1));
        assertThat(rejected(s, FakeJob.of(5)).code()).isEqualTo(ErrorCode.UNAVAILABLE);
        runAll();
        assertThat(runner.ran).containsExactly("1:3", "2:3 4:1");
    }

    @Test
    void whatLeavesTheQueueMakesRoom() {
        Scheduler s = bounded(1, 2);
        FakeJob gone = FakeJob.of(1);
        FakeJob late = FakeJob.until(2, time.nanos() + 50);
        s.submit(gone);
        s.submit(late);
        assertThat(rejected(s, FakeJob.of(3)).code()).isEqualTo(ErrorCode.UNAVAILABLE);
        gone.cancel();
        s.submit(FakeJob.of(4));
        assertThat(rejected(s, FakeJob.of(5)).code()).isEqualTo(ErrorCode.UNAVAILABLE);
        time.advance(50);
        assertThat(late.code).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
        s.submit(FakeJob.of(6));
        runAll();
        assertThat(runner.ran).containsExactly("4:1", "6:1");
    }

    @Test
    void aBatchUnderWayDoesNotCount() {
        Scheduler s = bounded(1, 1);
        s.submit(FakeJob.of(1));
        runner.during = () -> {
            s.submit(FakeJob.of(2));
            assertThat(rejected(s, FakeJob.of(3)).code()).isEqualTo(ErrorCode.UNAVAILABLE);
        };
        runAll();
        assertThat(runner.ran).containsExactly("1:1", "2:1");
    }

    @Test
    void everyShapeMakesABatchOfItsOwn() {
        Scheduler s = bounded(4, 2);
        FakeJob a = job(1, 1, 1);
        FakeJob b = job(2, 1, 2);
        s.submit(a);
        s.submit(b);
        assertThat(rejected(s, job(3, 1, 1)).code()).isEqualTo(ErrorCode.UNAVAILABLE);
        FakeJob c = job(4, 1, 2);
        s.submit(c);
        runAll();
        assertThat(runner.ran).containsExactly("1:1", "2:1 4:1");
        List.of(a, b, c).forEach(SplitRequestTest::expectDoubled);
    }

    @Test
    void aLargeRequestCountsAllBatchesItFills() {
        Scheduler s = batcher(4, 0, false, new BatchSizePolicy(List.of(), false, 100, 3), InlinePolicy.NEVER);
        FakeJob a = job(1, 2, 1);
        s.submit(a);
        assertThat(rejected(s, job(2, 11, 1)).getMessage()).contains("currently 1 batches enqueued");
        FakeJob big = job(3, 10, 1);
        s.submit(big);
        assertThat(rejected(s, job(4, 1, 1)).getMessage()).contains("currently 3 batches enqueued");
        runAll();
        assertThat(runner.ran).containsExactly("1:2 3:2", "3:4", "3:4");
        expectDoubled(a);
        expectDoubled(big);
    }

    @Test
    void theServersLimitOfWaitingRequestsStillHolds() {
        ModelConfig config = ModelConfig.builder("m")
                .maxBatchSize(4)
                .batching(
                        DynamicBatching.EAGER.withBatchSizePolicy(new BatchSizePolicy(List.of(), false, 0, 1_000_000)))
                .instances(1)
                .build();
        Scheduler s = SchedulerFactory.create(config, runner, pool, new SchedulerOptions(2, InlinePolicy.NEVER));
        s.submit(FakeJob.of(1));
        s.submit(FakeJob.of(2));
        assertThat(rejected(s, FakeJob.of(3)).getMessage()).contains("Exceeds maximum queue size");
        runAll();
    }

    @Test
    void sequencesAndManyResponsesAreNotCut() {
        BatchSizePolicy fit = new BatchSizePolicy(List.of(4), true, 100, 3);
        ModelConfig config = ModelConfig.builder("m")
                .maxBatchSize(4)
                .batching(DynamicBatching.EAGER.withBatchSizePolicy(fit))
                .build();
        assertThat(config.batchSizePolicy()).isSameAs(fit);
        assertThat(config.toBuilder().decoupled(true).build().batchSizePolicy())
                .isEqualTo(new BatchSizePolicy(List.of(4), true, 0, 3));
        assertThat(config.toBuilder().batching(null).build().batchSizePolicy()).isSameAs(BatchSizePolicy.NONE);
    }
}
