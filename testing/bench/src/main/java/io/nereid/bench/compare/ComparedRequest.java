// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.compare;

import io.nereid.bench.harness.LoadGenerator;
import io.nereid.bench.harness.RequestBodies;
import io.nereid.bench.harness.ServerSetup;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Function;

/**
 * A kind of request by which two builds are compared. Immutable.
 *
 * @param work what is sent
 * @param served the models and options of both servers
 * @param load the load
 */
record ComparedRequest(String work, ServerSetup served, Function<RequestBodies, LoadGenerator> load) {
    private static final int CLIENTS = 16;

    /** All rows by name, in the order in which they are measured. */
    static final Map<String, ComparedRequest> ROWS = rows();

    private static Map<String, ComparedRequest> rows() {
        Map<String, ComparedRequest> rows = new LinkedHashMap<>();
        rows.put(
                "rest-small",
                new ComparedRequest(
                        "V2 REST JSON, 16 floats, 16 connections", ServerSetup.IDENTITY, RequestBodies::restSmall));
        rows.put(
                "grpc-single",
                new ComparedRequest(
                        "V2 gRPC raw, 16 floats, 16 connections x 1",
                        ServerSetup.IDENTITY,
                        bodies -> bodies.grpcSmall(CLIENTS, 1)));
        rows.put(
                "grpc-mux",
                new ComparedRequest(
                        "V2 gRPC raw, 16 floats, 4 connections x 16",
                        ServerSetup.IDENTITY,
                        bodies -> bodies.grpcSmall(4, CLIENTS)));
        rows.put(
                "rest-big",
                new ComparedRequest("V2 REST binary, 4.8 MB", ServerSetup.IDENTITY, RequestBodies::restBig));
        rows.put("grpc-big", new ComparedRequest("V2 gRPC raw, 4.8 MB", ServerSetup.IDENTITY, RequestBodies::grpcBig));
        rows.put(
                "cache",
                new ComparedRequest("response cache hit, V2 REST JSON", ServerSetup.CACHED, RequestBodies::restSmall));
        rows.put(
                "onnx",
                new ComparedRequest(
                        "simple, an ONNX model with batching, 16 connections",
                        ServerSetup.SIMPLE,
                        bodies -> bodies.simple(CLIENTS)));
        rows.put(
                "minilm",
                new ComparedRequest(
                        "minilm, 16 tokens, 16 connections", ServerSetup.MINILM, bodies -> bodies.minilm(CLIENTS)));
        return rows;
    }
}
