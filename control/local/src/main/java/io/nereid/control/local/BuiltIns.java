// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.core.Route;
import io.nereid.control.core.Workload;
import io.nereid.control.gateway.PayloadTap;
import io.nereid.endpoint.ProtocolCodec;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What comes with the server and runs in its process beside the models. Implementations are thread-safe. */
public interface BuiltIns {
    /**
     * Makes an explainer ready; may take long.
     *
     * @param workload the revision that it is
     * @param form what it is to be
     * @param files the fetched artifacts of {@code form}, in their order
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a method or a setting that there is not
     */
    Running explainer(Workload workload, Workload.Explainer form, List<Path> files);

    /**
     * Makes the steps of a jar ready; may take long.
     *
     * @param workload the revision that they are
     * @param form what they are to be
     * @param jar where they are, among the fetched artifacts of {@code form}
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a jar without steps
     */
    default Running transformer(Workload workload, Workload.Transformer form, Path jar) {
        throw ServingException.of(
                ErrorCode.UNIMPLEMENTED,
                "this server runs no transformers of jars, and " + jar.getFileName() + " is one",
                "give it as a Python file, or as a container with a command");
    }

    /**
     * Makes a graph ready; returns at once.
     *
     * @param route the service; its {@link Route#graph} says what to run
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a graph that cannot be run
     */
    Running graph(Route route);

    /**
     * What listens to a revision's requests, for its logger; returns at once. Null when nothing does.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a logger that cannot be
     */
    default @Nullable Tap tap(Workload workload) {
        return null;
    }

    /** Something that has been made ready, until it is closed. */
    interface Running extends AutoCloseable {
        /** How it is spoken with. */
        List<ProtocolCodec> codecs();

        @Override
        void close();
    }

    /** A listener to requests, until it is closed. */
    interface Tap extends AutoCloseable {
        /** The listener. */
        PayloadTap listener();

        /** What of its settings has no effect. */
        default List<String> warnings() {
            return List.of();
        }

        @Override
        void close();
    }
}
