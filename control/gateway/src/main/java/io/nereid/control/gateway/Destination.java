// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.transport.api.ProtocolCodec;
import java.util.List;

/** Where a revision's requests go. Immutable. */
public sealed interface Destination {
    /**
     * Models in the engine of this process.
     *
     * @param prefix the model's name in the engine, such as {@code default/iris-predictor-00001}; the models of a repository
     *     are called {@code prefix/model}
     * @param repository whether it is a repository of models, which clients call by their own names
     * @param modelName the name that clients use when it is a single model
     */
    record Models(String prefix, boolean repository, String modelName) implements Destination {}

    /** Child processes that answer alike; empty when none does yet. */
    record Processes(List<Replica> replicas) implements Destination {
        /** Keeps a copy. */
        public Processes {
            replicas = List.copyOf(replicas);
        }
    }

    /** Protocols that are served by this process itself: an explainer, a graph. */
    record Handler(List<ProtocolCodec> codecs) implements Destination {
        /** Keeps a copy. */
        public Handler {
            codecs = List.copyOf(codecs);
        }
    }

    /**
     * One child process, or the first of several that belong together.
     *
     * @param httpPort 0 when it speaks no HTTP
     * @param grpcPort 0 when it speaks no gRPC; may be the same port
     */
    record Replica(String host, int httpPort, int grpcPort) {}
}
