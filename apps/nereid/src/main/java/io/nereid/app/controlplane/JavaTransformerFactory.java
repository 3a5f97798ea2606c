// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.controlplane;

import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.gateway.Gateway;
import io.nereid.control.gateway.upstream.RevisionCodecs;
import io.nereid.control.local.spi.InProcessComponents.RunningComponent;
import io.nereid.transform.JavaTransformer;
import io.nereid.transform.Transformer;
import io.nereid.transport.api.ProtocolCodec;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;

/**
 * Creates transformers from the steps in a jar: protocol codecs that run the steps before and after the predictor.
 * Immutable and thread-safe.
 */
public final class JavaTransformerFactory {
    private static final int MOST_THREADS = 256;

    private final Predictors predictors;
    private final Path scratch;

    /** How transformers reach their predictors. Implementations are thread-safe. */
    public interface Predictors {
        /** The protocols around a predictor's models, with steps on tensors before and after them. */
        List<ProtocolCodec> tensors(Workload workload, JavaTransformer steps);

        /** Calls the predictor with JSON. */
        JavaTransformer.Predictor json(Workload workload);
    }

    /**
     * Creates a factory of transformers in front of services of a gateway.
     *
     * @param codecs creates the protocol codecs for a set of models
     * @param scratch the directory to which jars are copied
     */
    JavaTransformerFactory(Gateway gateway, RevisionCodecs codecs, Path scratch) {
        this(new OfGateway(gateway, codecs), scratch);
    }

    /** @param scratch the directory to which jars are copied */
    public JavaTransformerFactory(Predictors predictors, Path scratch) {
        this.predictors = predictors;
        this.scratch = scratch;
    }

    /**
     * Creates the transformer of a jar. Blocks until it has started.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a jar without steps, or one that cannot start
     */
    public RunningComponent of(Workload workload, Workload.Transformer form, Path jar) {
        JavaTransformer steps = JavaTransformer.load(
                jar,
                Objects.requireNonNullElse(form.className(), ""),
                new Transformer.Settings(
                        workload.modelName(),
                        Objects.requireNonNull(jar.toAbsolutePath().getParent()),
                        form.settings()),
                scratch,
                threads(workload));
        try {
            return new Steps(
                    steps.ofJson()
                            ? List.of(steps.json(predictors.json(workload)))
                            : predictors.tensors(workload, steps),
                    steps);
        } catch (RuntimeException e) {
            steps.close();
            throw e;
        }
    }

    /** Predictors behind a gateway in this process. */
    private record OfGateway(Gateway gateway, RevisionCodecs codecs) implements Predictors {
        @Override
        public List<ProtocolCodec> tensors(Workload workload, JavaTransformer steps) {
            return gateway.transformerCodecs(
                    workload.namespace(),
                    workload.service(),
                    (engine, control) -> steps.around(engine, control, workload.timeout(), codecs::build));
        }

        @Override
        public JavaTransformer.Predictor json(Workload workload) {
            return (method, target, headers, body) -> gateway.call(
                    workload.namespace(), workload.service(), Component.PREDICTOR, method, target, headers, body);
        }
    }

    private static int threads(Workload workload) {
        return workload.containerConcurrency() > 0
                ? Math.min(workload.containerConcurrency(), MOST_THREADS)
                : Math.max(8, 4 * Runtime.getRuntime().availableProcessors());
    }

    private record Steps(List<ProtocolCodec> codecs, JavaTransformer transformer) implements RunningComponent {
        @Override
        public void close() {
            transformer.close();
        }
    }
}
