// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.upstream;

import io.nereid.transport.api.ProtocolCodec;
import java.util.List;

/** Where the requests of a revision go. Immutable. */
public sealed interface RevisionTarget {
    /**
     * Models in the engine of this process.
     *
     * @param prefix the model's name in the engine, such as {@code default/iris-predictor-00001}; the models of a
     *     repository are called {@code prefix/model}
     * @param repository whether it is a repository of models, which clients call by their own names
     * @param modelName the name that clients use for a single model
     */
    record Models(String prefix, boolean repository, String modelName) implements RevisionTarget {}

    /** Child processes or pods with the same behaviour; empty while none is ready. */
    record Processes(List<Replica> replicas) implements RevisionTarget {
        /** Keeps a copy. */
        public Processes {
            replicas = List.copyOf(replicas);
        }
    }

    /** Endpoints that this process serves itself: an explainer or an InferenceGraph. */
    record Handler(List<ProtocolCodec> codecs) implements RevisionTarget {
        /** Keeps a copy. */
        public Handler {
            codecs = List.copyOf(codecs);
        }
    }

    /**
     * One child process or pod, or the first of several that form one replica.
     *
     * @param httpPort 0 when it does not speak HTTP
     * @param grpcPort 0 when it does not speak gRPC; may equal {@code httpPort}
     * @param preferred whether it is taken before those that are not, as one in the same zone is
     */
    record Replica(String host, int httpPort, int grpcPort, boolean preferred) {
        /** A replica that is as good as the others. */
        public Replica(String host, int httpPort, int grpcPort) {
            this(host, httpPort, grpcPort, true);
        }

        /** Whether it is the same process as another one. */
        public boolean isSame(Replica other) {
            return host.equals(other.host) && httpPort == other.httpPort && grpcPort == other.grpcPort;
        }
    }
}
