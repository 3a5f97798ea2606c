// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.spi;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.core.Route;
import io.nereid.control.core.Workload;
import io.nereid.control.gateway.activator.PayloadListener;
import io.nereid.transport.api.ProtocolCodec;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Creates the components that run inside the server process beside the models: explainers, Java transformers, graphs
 * and payload loggers. Implementations are thread-safe.
 */
public interface InProcessComponents {
    /**
     * Creates an explainer. May block.
     *
     * @param workload the explainer's revision
     * @param form the explainer's specification
     * @param files the fetched artifacts of {@code form}, in their order
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for an unknown method or setting
     */
    RunningComponent explainer(Workload workload, Workload.Explainer form, List<Path> files);

    /**
     * Creates a transformer from the steps in a jar. May block.
     *
     * @param workload the transformer's revision
     * @param form the transformer's specification
     * @param jar the jar, one of the fetched artifacts of {@code form}
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a jar without steps
     */
    default RunningComponent transformer(Workload workload, Workload.Transformer form, Path jar) {
        throw ServingException.of(
                ErrorCode.UNIMPLEMENTED,
                "this server does not run transformers from jars, and " + jar.getFileName() + " is a jar",
                "provide the transformer as a Python file, or as a container with a command");
    }

    /**
     * Creates an inference graph. Does not block.
     *
     * @param route the graph's route; {@link Route#graph} holds its definition
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for an invalid graph
     */
    RunningComponent graph(Route route);

    /**
     * Creates the payload logger of a revision. Does not block.
     *
     * @return the logger; null when this server does not log payloads
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for an invalid logger
     */
    default @Nullable PayloadLogger payloadLogger(Workload workload) {
        return null;
    }

    /** A running component. It serves requests until it is closed. */
    interface RunningComponent extends AutoCloseable {
        /** The protocols through which the component serves requests. */
        List<ProtocolCodec> codecs();

        @Override
        void close();
    }

    /** Logs a revision's requests until it is closed. */
    interface PayloadLogger extends PayloadListener, AutoCloseable {
        /** Settings of the logger without effect on this server, a sentence each. */
        default List<String> warnings() {
            return List.of();
        }

        @Override
        void close();
    }
}
