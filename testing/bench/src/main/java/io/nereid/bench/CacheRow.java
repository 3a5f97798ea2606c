// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** Answers from the response cache against the do-nothing server, over REST and over gRPC. Has no state. */
final class CacheRow implements Bench.Row {
    private static final double MAX_RATIO = 2;

    @Override
    public List<Figure> measure(Bench.Setting setting) throws IOException, InterruptedException {
        List<Figure> figures = new ArrayList<>();
        for (CompareRow row : List.of(
                new CompareRow(
                        "response cache hit, V2 REST JSON, 16 floats, 16 connections",
                        Bodies::restSmall,
                        Served.CACHED,
                        MAX_RATIO,
                        0,
                        0),
                new CompareRow(
                        "response cache hit, V2 gRPC raw, 16 floats, 16 conns x 1",
                        b -> b.grpcSmall(16, 1),
                        Served.CACHED,
                        MAX_RATIO,
                        0,
                        0))) {
            figures.addAll(row.measure(setting));
        }
        return figures;
    }
}
