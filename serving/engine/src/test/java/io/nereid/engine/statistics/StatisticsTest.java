// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.statistics;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.backend.ModelTraits;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.CountedTensors;
import io.nereid.engine.FakeClock;
import io.nereid.engine.FakeModel;
import io.nereid.engine.options.MetricsOptions;
import io.nereid.engine.servable.Client;
import io.nereid.engine.servable.ModelServable;
import io.nereid.observe.ModelStatisticsSnapshot;
import io.nereid.observe.ModelStatisticsSnapshot.Batch;
import io.nereid.observe.ModelStatisticsSnapshot.Total;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class StatisticsTest {
    private static final ServableId ID = new ServableId("m", 3);
    private static final long MS = 1_000_000;

    private final CountedTensors tensors = new CountedTensors();
    private final FakeClock clock = new FakeClock();
    private final DeviceExecutor pool = new DeviceExecutor("test", 2);

    @AfterEach
    void nothingIsLeft() {
        pool.close();
        tensors.assertAllFreed();
    }

    @Test
    void everyStatisticOfASuccessfulRequest() throws Exception {
        ModelServable servable = servable(clock, (in, out) -> {
            clock.advance(7 * MS);
            return FakeModel.identity(in, out);
        });
        assertThat(servable.report().lastInferenceMillis()).isZero();
        Client client = new Client(servable, clock);
        client.send(List.of(tensors.ints("IN", Shape.of(3, 1), 1, 2, 3)));
        assertThat(client.nextText()).isEqualTo("OUT 1 2 3.");
        ModelStatisticsSnapshot report = servable.report();
        assertThat(report.model()).isEqualTo("m");
        assertThat(report.version()).isEqualTo(3);
        assertThat(report.lastInferenceMillis()).isEqualTo(FakeClock.START_MILLIS + 7);
        assertThat(report.inferences()).isEqualTo(3);
        assertThat(report.executions()).isEqualTo(1);
        assertThat(report.success()).isEqualTo(new Total(1, 7 * MS));
        assertThat(report.failure()).isEqualTo(Total.ZERO);
        assertThat(report.queue()).isEqualTo(new Total(1, 0));
        assertThat(report.computeInput()).isEqualTo(new Total(1, 0));
        assertThat(report.computeInfer()).isEqualTo(new Total(1, 7 * MS));
        assertThat(report.computeOutput()).isEqualTo(new Total(1, 0));
        assertThat(report.cacheHit()).isEqualTo(Total.ZERO);
        assertThat(report.cacheMiss()).isEqualTo(Total.ZERO);
        assertThat(report.batches())
                .containsExactly(new Batch(3, new Total(1, 0), new Total(1, 7 * MS), new Total(1, 0)));
        assertThat(report.responses()).isEmpty();
        assertThat(report.memory()).isEmpty();
        servable.unload();
    }

    @Test
    void aFailureIsCountedByWhoseItIsAndNotAsAnInference() throws Exception {
        ModelServable servable = servable(clock, (in, out) -> {
            clock.advance(2 * MS);
            throw ServingException.of(
                    CountedTensors.ints(in.get(0))[0] == 0 ? ErrorCode.INTERNAL : ErrorCode.INVALID_ARGUMENT, "no");
        });
        Client client = new Client(servable, clock);
        client.send(List.of(tensors.ints("IN", Shape.of(1, 1), 0)));
        client.send(List.of(tensors.ints("IN", Shape.of(1, 1), 1)));
        client.nextFailure();
        client.nextFailure();
        client.send(List.of());
        assertThat(client.nextFailure().code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        ModelStatisticsSnapshot report = servable.report();
        assertThat(report.failure().count()).isEqualTo(3);
        assertThat(report.failure().nanos()).isGreaterThanOrEqualTo(4 * MS);
        assertThat(report.success().count()).isZero();
        assertThat(report.inferences()).isZero();
        assertThat(report.executions()).isZero();
        assertThat(servable.statistics()
                        .failures[ModelStatistics.Failure.BACKEND.ordinal()]
                        .sum())
                .isEqualTo(2);
        assertThat(servable.statistics()
                        .failures[ModelStatistics.Failure.OTHER.ordinal()]
                        .sum())
                .isEqualTo(1);
        servable.unload();
    }

    @Test
    void reasonsFollowFromTheCodeAndFromWhetherTheModelHadTheRequest() {
        assertThat(ModelStatistics.Failure.of(ErrorCode.UNAVAILABLE, false))
                .isEqualTo(ModelStatistics.Failure.REJECTED);
        assertThat(ModelStatistics.Failure.of(ErrorCode.DEADLINE_EXCEEDED, false))
                .isEqualTo(ModelStatistics.Failure.REJECTED);
        assertThat(ModelStatistics.Failure.of(ErrorCode.UNAVAILABLE, true)).isEqualTo(ModelStatistics.Failure.BACKEND);
        assertThat(ModelStatistics.Failure.of(ErrorCode.CANCELLED, true)).isEqualTo(ModelStatistics.Failure.CANCELED);
        assertThat(ModelStatistics.Failure.of(ErrorCode.NOT_FOUND, false)).isEqualTo(ModelStatistics.Failure.OTHER);
    }

    @Test
    void whatTheCacheAnswersIsASuccessButNoInference() {
        ModelStatistics statistics = new ModelStatistics(ID);
        statistics.cached(clock.nanos(), "", 50, 20, 1);
        statistics.cacheMissed(30);
        ModelStatisticsSnapshot report = statistics.report(false, 4096);
        assertThat(report.success()).isEqualTo(new Total(1, 50));
        assertThat(report.cacheHit()).isEqualTo(new Total(1, 20));
        assertThat(report.cacheMiss()).isEqualTo(new Total(1, 30));
        assertThat(report.inferences()).isZero();
        assertThat(report.queue().count()).isZero();
        assertThat(report.memory()).containsExactly(new ModelStatisticsSnapshot.Memory("CPU", 0, 4096));
    }

    @Test
    void countsAreExactWhenManyThreadsSendAndNeverFall() throws Exception {
        ModelServable servable = servable(Clock.system(), FakeModel::identity);
        int threads = 4;
        int each = 500;
        List<Client> clients = new ArrayList<>();
        List<Thread> senders = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
            Client client = new Client(servable, Clock.system());
            clients.add(client);
            Thread sender = new Thread(() -> {
                for (int i = 0; i < each; i++) {
                    client.send(List.of(tensors.ints("IN", Shape.of(2, 1), i, i)));
                }
            });
            senders.add(sender);
            sender.start();
        }
        long before = 0;
        for (Client client : clients) {
            for (int i = 0; i < each; i++) {
                client.next().response().close();
                if (i % 50 == 0) {
                    long now = servable.report().success().count();
                    assertThat(now).isGreaterThanOrEqualTo(before);
                    before = now;
                }
            }
        }
        for (Thread sender : senders) {
            sender.join();
        }
        ModelStatisticsSnapshot report = servable.report();
        assertThat(report.success().count()).isEqualTo((long) threads * each);
        assertThat(report.queue().count()).isEqualTo((long) threads * each);
        assertThat(report.inferences()).isEqualTo(2L * threads * each);
        assertThat(report.batches().stream()
                        .mapToLong(b -> b.size() * b.computeInfer().count())
                        .sum())
                .isEqualTo(2L * threads * each);
        assertThat(report.batches().stream()
                        .mapToLong(b -> b.computeInfer().count())
                        .sum())
                .isEqualTo(report.executions());
        assertThat(servable.statistics().inFlight()).isZero();
        clients.forEach(Client::assertNothingUnderWay);
        servable.unload();
    }

    @Test
    void batchesOfAnySizeAreCounted() {
        BatchStatistics statistics = new BatchStatistics(4_000_000);
        statistics.add(1, 1, 2, 3);
        statistics.add(1_000_000, 1, 2, 3);
        statistics.add(1_000_000, 1, 2, 3);
        statistics.add(0, 0, 0, 0);
        assertThat(statistics.executions()).isEqualTo(4);
        assertThat(statistics.report()).extracting(Batch::size).containsExactly(0L, 1L, 1_000_000L);
        assertThat(statistics.report().get(2).computeInfer()).isEqualTo(new Total(2, 4));
    }

    @Test
    void quantilesAreOfTheLastMinuteAndWithinThreePerCent() {
        SlidingQuantiles quantiles = new SlidingQuantiles(clock);
        assertThat(quantiles.quantile(0.5)).isNaN();
        for (int i = 1; i <= 1000; i++) {
            quantiles.record(i * 1000L);
        }
        assertThat(quantiles.quantile(0.5)).isBetween(485_000.0, 515_000.0);
        assertThat(quantiles.quantile(0.99)).isBetween(960_000.0, 1_020_000.0);
        assertThat(quantiles.quantile(0)).isBetween(970.0, 1030.0);
        clock.advance(40_000 * MS);
        quantiles.record(5);
        assertThat(quantiles.quantile(0.5)).isGreaterThan(400_000);
        clock.advance(40_000 * MS);
        assertThat(quantiles.quantile(0.99)).isEqualTo(5);
        clock.advance(200_000 * MS);
        assertThat(quantiles.quantile(0.99)).isNaN();
        assertThat(quantiles.count()).isEqualTo(1001);
        assertThat(quantiles.sum()).isEqualTo(500_500_005);
        quantiles.record(Long.MAX_VALUE / 2);
        quantiles.record(-1);
        assertThat(quantiles.quantile(1)).isGreaterThan(1e14);
    }

    private ModelServable servable(Clock time, BiFunction<List<Tensor>, List<String>, List<Tensor>> function) {
        ModelConfig config = FakeModel.config(
                8,
                Duration.ZERO,
                List.of(new TensorSpec("IN", DataType.INT32, Shape.of(1))),
                List.of(new TensorSpec("OUT", DataType.INT32, Shape.of(1))));
        FakeModel model = new FakeModel(config, ModelTraits.DEFAULT, function);
        return ModelServable.of(
                ID,
                model,
                config,
                new ModelStatistics(ID, config, MetricsOptions.DEFAULT, time),
                time == clock ? new DeviceExecutor("fake", 1, clock) : pool,
                SchedulerOptions.DEFAULT,
                io.nereid.scheduling.InitialStateFiles.NONE,
                time);
    }
}
