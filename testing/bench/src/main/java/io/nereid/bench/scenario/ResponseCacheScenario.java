// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.scenario;

import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.RequestBodies;
import io.nereid.bench.harness.ServerSetup;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** Response cache hits, compared with the no-op server, over REST and gRPC. Stateless. */
public final class ResponseCacheScenario implements Scenario {
    private static final double MAX_RATIO = 2;

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException, InterruptedException {
        List<BenchmarkResult> results = new ArrayList<>();
        for (IdentityModelScenario row : List.of(
                new IdentityModelScenario(
                        "response cache hit, V2 REST JSON, 16 floats, 16 connections",
                        RequestBodies::restSmall,
                        ServerSetup.CACHED,
                        MAX_RATIO,
                        0,
                        0),
                new IdentityModelScenario(
                        "response cache hit, V2 gRPC raw, 16 floats, 16 conns x 1",
                        b -> b.grpcSmall(16, 1),
                        ServerSetup.CACHED,
                        MAX_RATIO,
                        0,
                        0))) {
            results.addAll(row.measure(setting));
        }
        return results;
    }
}
