// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.explain.request.Exchange;
import io.nereid.explain.request.ExplainSettings;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableId;
import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.HttpRoute;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/** Serves functions as models; responds at once unless it is held. Confined to a test. */
public final class FunctionEngine implements InferenceEngine, Clock {
    private final Map<String, ModelMetadata> models = new HashMap<>();
    private final Map<String, UnaryOperator<double[]>> functions = new HashMap<>();
    private final Map<String, UnaryOperator<double[]>> contributions = new HashMap<>();
    public final List<Integer> batches = new ArrayList<>();
    final List<ResponseSink> held = new ArrayList<>();
    int cancelled;
    boolean hold;
    long nanos;
    long step;

    @Nullable ServingException failure;

    /** A model of one input [n, features], or of one for each name, and one output. */
    public FunctionEngine with(
            String name, int features, String names, int maxBatch, UnaryOperator<double[]> function) {
        return with(
                name,
                List.of(new TensorSpec("x", DataType.FP64, Shape.of(-1, features))),
                List.of(new TensorSpec("y", DataType.FP64, Shape.of(-1))),
                names,
                maxBatch,
                function);
    }

    public FunctionEngine with(
            String name,
            List<TensorSpec> inputs,
            List<TensorSpec> outputs,
            String names,
            int maxBatch,
            UnaryOperator<double[]> function) {
        Map<String, String> properties = names.isEmpty() ? Map.of() : Map.of("feature_names", names);
        models.put(name, new ModelMetadata(new ServableId(name, 3), "function", inputs, outputs, maxBatch, properties));
        functions.put(name, function);
        return this;
    }

    /** The same model with SHAP values of its own. */
    public FunctionEngine explaining(String name, Shape shape, UnaryOperator<double[]> own) {
        ModelMetadata m = metadata(ModelRef.latest(name));
        Map<String, Signature> signatures = new HashMap<>(m.signatures());
        signatures.put(
                "shap",
                new Signature(
                        "nereid/shap",
                        m.inputs(),
                        List.of(new TensorSpec("contributions", DataType.FP32, shape)),
                        Map.of()));
        models.put(
                name,
                new ModelMetadata(
                        m.id(), m.platform(), m.inputs(), m.outputs(), m.maxBatchSize(), m.properties(), signatures));
        contributions.put(name, own);
        return this;
    }

    /** The response of a codec with these settings. */
    public Exchange ask(ExplainSettings settings, String route, String body, String... parameters) {
        Exchange exchange = new Exchange(body, parameters);
        for (HttpRoute r : new ExplainCodec(this, Runnable::run, this, settings).httpRoutes()) {
            if (r.template().equals(route)) {
                r.handler().handle(exchange);
                return exchange;
            }
        }
        throw new AssertionError("no route " + route);
    }

    public Exchange ask(String model, String body) {
        return ask(ExplainSettings.none(), "/v1/models/{model}:explain", body, model);
    }

    @Override
    public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
        nanos += step;
        if (hold) {
            request.release();
            held.add(sink);
            return () -> cancelled++;
        }
        if (failure != null) {
            request.release();
            sink.fail(failure);
            return () -> {};
        }
        String model = request.model().model();
        boolean own = request.options().signature().equals("shap");
        UnaryOperator<double[]> function = (own ? contributions : functions).get(model);
        List<Tensor> inputs = request.inputs();
        int rows = (int) inputs.get(0).shape().dim(0);
        batches.add(rows);
        ByteBuffer[] from = new ByteBuffer[inputs.size()];
        for (int i = 0; i < from.length; i++) {
            from[i] = inputs.get(i).buffer();
        }
        int each = (int) (inputs.get(0).shape().elementCount() / rows);
        double[][] answers = new double[rows][];
        for (int r = 0; r < rows; r++) {
            double[] row = new double[from.length * each];
            for (int i = 0; i < row.length; i++) {
                int t = i / each;
                row[i] = switch (inputs.get(t).dataType()) {
                    case FP64 -> from[t].getDouble();
                    case FP32 -> from[t].getFloat();
                    default -> from[t].getLong();
                };
            }
            answers[r] = function.apply(row);
        }
        request.release();
        DataType type =
                own ? DataType.FP32 : metadata(request.model()).outputs().get(0).dataType();
        Shape shape = answers[0].length == 1 ? Shape.of(rows) : Shape.of(rows, answers[0].length);
        Tensor output = Tensor.allocate(request.outputs().get(0).name(), type, shape);
        ByteBuffer to = output.buffer();
        for (double[] answer : answers) {
            for (double value : answer) {
                if (type == DataType.FP32) {
                    to.putFloat((float) value);
                } else {
                    to.putDouble(value);
                }
            }
        }
        sink.next(new InferenceResponse(metadata(request.model()).id(), "", List.of(output), Map.of()), true);
        return () -> {};
    }

    @Override
    public ModelMetadata metadata(ModelRef model) {
        ModelMetadata found = models.get(model.model());
        if (found == null) {
            throw ServingException.of(ErrorCode.NOT_FOUND, "Model with name " + model.model() + " does not exist.");
        }
        return found;
    }

    @Override
    public ModelConfig config(ModelRef model) {
        return ModelConfig.unspecified(model.model());
    }

    @Override
    public long nanos() {
        return nanos;
    }

    @Override
    public long millis() {
        return 0;
    }
}
