// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.scenario;

import com.sun.management.ThreadMXBean;
import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.jmh.JsonBenchmark;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Reading and writing 1.2 M floats as JSON, in process: nanoseconds and bytes of garbage per float. Stateless. */
public final class JsonScenario implements Scenario {
    private static final int WARMUP = 25;
    private static final int RUNS = 15;

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) {
        List<BenchmarkResult> results = new ArrayList<>();
        JsonBenchmark six = benchmark(6);
        JsonBenchmark seventeen = benchmark(17);
        results.add(figure(setting, "JSON, 1.2 M floats in, 6 digits", six::read, six.floats, 12));
        results.add(figure(setting, "JSON, 1.2 M floats in, 17 digits", seventeen::read, seventeen.floats, 22));
        results.add(figure(setting, "JSON, 1.2 M floats out, shortest", six::writeShortest, six.floats, 35));
        results.add(
                figure(setting, "JSON, 1.2 M floats out, as doubles", seventeen::writeWidened, seventeen.floats, 35));
        return results;
    }

    private static JsonBenchmark benchmark(int digits) {
        JsonBenchmark b = new JsonBenchmark();
        b.floats = 1_200_000;
        b.digits = digits;
        b.prepare();
        return b;
    }

    private static BenchmarkResult figure(
            BenchmarkSettings setting, String work, Runnable task, int floats, double target) {
        for (int i = 0; i < WARMUP; i++) {
            task.run();
        }
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        double[] nanos = new double[RUNS];
        long garbage = threads.getCurrentThreadAllocatedBytes();
        for (int i = 0; i < RUNS; i++) {
            long from = threads.getCurrentThreadCpuTime();
            task.run();
            nanos[i] = (threads.getCurrentThreadCpuTime() - from) / (double) floats;
        }
        garbage = threads.getCurrentThreadAllocatedBytes() - garbage;
        double bytes = garbage / (double) RUNS / floats;
        setting.log("%s: %.1f ns, %.4f bytes of garbage per float", work, BenchmarkResult.median(nanos), bytes);
        return new BenchmarkResult(
                work,
                "",
                BenchmarkResult.spread(nanos, "ns/float"),
                "",
                String.format(Locale.ROOT, "%.3f B garbage/float", bytes),
                String.format(Locale.ROOT, "<= %.0f ns, no garbage", target),
                BenchmarkResult.verdict(BenchmarkResult.median(nanos) <= target && bytes < 0.01));
    }
}
