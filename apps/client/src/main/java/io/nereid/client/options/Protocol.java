// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.options;

/** The protocols of the client. */
public enum Protocol {
    /** Open Inference V2 over HTTP/1.1, with Triton's extensions where the server has them. */
    V2_REST,
    /** Open Inference V2 over gRPC, with Triton's extensions where the server has them. */
    V2_GRPC,
    /** {@code :predict} of KServe's V1 and of TensorFlow Serving's REST API. */
    V1
}
