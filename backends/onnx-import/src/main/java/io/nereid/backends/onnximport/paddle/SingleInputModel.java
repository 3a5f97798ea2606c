// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.paddle;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ForwardingModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelRequest;
import io.nereid.backend.ModelTraits;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.Tensor;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A model that accepts its only input under any name and in any numeric type, as KServe's PaddlePaddle server does. In the
 * place of that server its only output has the name that it has there; several keep their names, there too. Immutable.
 */
final class SingleInputModel extends ForwardingModel {
    private final ModelTraits traits;
    /** The model's own name of the output that is called {@code output-0}; null where it keeps its name. */
    private final @Nullable String output;

    private SingleInputModel(BackendModel model, ModelConfig config, @Nullable String output) {
        super(model, config);
        this.traits = model.traits().toBuilder().takesTables(true).build();
        this.output = output;
    }

    /** @param given the configuration before the model completed it */
    static BackendModel of(BackendModel model, ModelConfig given) {
        ModelConfig config = model.config();
        boolean kserve =
                given.parameters().getOrDefault(ModelMetadata.KSERVE_SERVER, "").equals("true");
        if (!kserve || !given.outputs().isEmpty() || config.outputs().size() != 1) {
            return new SingleInputModel(model, config, null);
        }
        TensorSpec only = config.outputs().get(0);
        TensorSpec named = new TensorSpec(
                ModelMetadata.KSERVE_OUTPUT,
                only.dataType(),
                only.shape(),
                only.optional(),
                only.ragged(),
                only.reshape(),
                only.unchecked());
        return new SingleInputModel(
                model, config.toBuilder().outputs(List.of(named)).build(), only.name());
    }

    @Override
    public ModelTraits traits() {
        return traits;
    }

    @Override
    public ModelInstance newInstance() {
        ModelInstance inside = super.newInstance();
        return output == null ? inside : new Renamed(inside, output);
    }

    /** Confined as the instance that it wraps. */
    private record Renamed(ModelInstance inside, String output) implements ModelInstance {
        @Override
        public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
            return run(inputs, outputs, 0);
        }

        @Override
        public List<Tensor> run(List<Tensor> inputs, List<String> outputs, int idleThreads) {
            return inside.run(inputs, outputs.stream().map(o -> output).toList(), idleThreads).stream()
                    .map(Renamed::named)
                    .toList();
        }

        private static Tensor named(Tensor tensor) {
            Tensor named = tensor.retainAs(ModelMetadata.KSERVE_OUTPUT, tensor.shape());
            tensor.close();
            return named;
        }

        @Override
        public void execute(List<ModelRequest> requests) {
            inside.execute(requests);
        }

        @Override
        public void cancel() {
            inside.cancel();
        }

        @Override
        public void close() {
            inside.close();
        }
    }
}
