// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import io.nereid.observe.RequestTrace;
import io.nereid.protocols.v2.codec.CodecBuffers;
import io.nereid.protocols.v2.codec.CodecContext;
import io.nereid.protocols.v2.codec.RequestParameters;
import io.nereid.protocols.v2.codec.RestInferReader;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.Signature;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.HttpExchange;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Decodes an inference request whose body is an Arrow IPC stream. The columns of its table are the inputs, or the
 * features of the only input; {@code id}, {@code outputs} and {@code parameters} are query parameters of the request or
 * keys of the schema's metadata. Confined to one thread; used once.
 */
public final class ArrowInferReader {
    private static final String ID = "id";
    private static final String OUTPUTS = "outputs";
    private static final String PARAMETERS = "parameters";

    private final CodecContext context;
    private final HttpExchange exchange;
    private final ModelRef model;
    private @Nullable RequestTrace trace;
    private final RequestParameters parameters = new RequestParameters(false);

    /** Prepares to read the body of an exchange. */
    public ArrowInferReader(CodecContext context, HttpExchange exchange, ModelRef model, @Nullable RequestTrace trace) {
        this.context = context;
        this.exchange = exchange;
        this.model = model;
        this.trace = trace;
    }

    /**
     * Reads the request; the caller owns its inputs, which are views of the body where its layout allows it.
     *
     * @throws ServingException INVALID_ARGUMENT when the stream is damaged, or does not fit the model; NOT_FOUND without
     *     the model
     */
    public InferenceRequest read() {
        if (exchange.header("inference-header-content-length") != null) {
            throw ServingException.invalidArgument(
                    "header Inference-Header-Content-Length does not apply to an Arrow stream",
                    "leave it out, or send JSON with binary tensors as application/octet-stream");
        }
        ArrowTable table = ArrowStreamReader.read(exchange.body());
        String id = option(table, ID);
        List<RequestedOutput> outputs = outputs(option(table, OUTPUTS));
        parameters(option(table, PARAMETERS));
        RestInferReader.forwardHeaders(context, exchange, parameters);
        trace = parameters.observed(trace, exchange.arrivedNanos());
        InferenceRequest.Options options = parameters.options(trace);
        ModelMetadata metadata = context.engine.metadata(model);
        List<Tensor> inputs = new ArrayList<>(4);
        boolean done = false;
        try {
            ColumnTensors tensors = new ColumnTensors(exchange.body(), context.options.maxTensorBytes());
            new TableInputs(table, metadata, inputs(metadata, options.signature()), tensors).addTo(inputs);
            CodecBuffers.checkCount(inputs.size(), "inputs");
            done = true;
        } finally {
            if (!done) {
                Tensor.closeAll(inputs);
            }
        }
        return new InferenceRequest(
                model,
                id,
                inputs,
                outputs,
                parameters.forModel(),
                Long.MAX_VALUE,
                exchange.arrivedNanos(),
                options,
                exchange.caller());
    }

    /** The trace of the request, with its times if the request asks for them; valid after {@link #read()}. */
    public @Nullable RequestTrace trace() {
        return trace;
    }

    private static List<TensorSpec> inputs(ModelMetadata metadata, String signature) {
        Signature chosen = metadata.signature(signature);
        // the engine refuses an unknown signature
        return signature.isEmpty() || chosen == null ? metadata.inputs() : chosen.inputs();
    }

    /** An option of the request, from its query or the schema's metadata; empty without it. */
    private String option(ArrowTable table, String name) {
        String query = exchange.queryParameter(name);
        String key = table.metadata().get(name);
        if (query != null && key != null) {
            throw ServingException.invalidArgument(
                    "'" + name + "' is both a query parameter and a key of the schema's metadata",
                    "give it in one of the two");
        }
        return query != null ? query : key != null ? key : "";
    }

    /** Names separated by commas, or a JSON array of names. */
    private List<RequestedOutput> outputs(String text) {
        List<RequestedOutput> outputs = new ArrayList<>();
        if (text.startsWith("[")) {
            JsonReader json = json(OUTPUTS, text);
            json.beginArray();
            while (json.hasNext()) {
                add(outputs, json.readString());
            }
            json.expectEnd();
        } else if (!text.isEmpty()) {
            for (String name : text.split(",", -1)) {
                add(outputs, name.strip());
            }
        }
        return outputs;
    }

    private static void add(List<RequestedOutput> outputs, String name) {
        for (RequestedOutput other : outputs) {
            if (other.name().equals(name)) {
                throw ServingException.invalidArgument("output '" + name + "' already exists in request");
            }
        }
        outputs.add(new RequestedOutput(name, 0));
        CodecBuffers.checkCount(outputs.size(), OUTPUTS);
    }

    private void parameters(String text) {
        if (text.isEmpty()) {
            return;
        }
        JsonReader json = json(PARAMETERS, text);
        json.beginObject();
        while (json.nextField()) {
            RestInferReader.readParameter(json, json.key(), parameters);
        }
        json.expectEnd();
        if (parameters.binaryOutputs()) {
            throw ServingException.invalidArgument(
                    "parameter 'binary_data_output' does not apply to a request in Arrow",
                    "the response is an Arrow stream, or JSON with the header 'Accept: application/json'");
        }
    }

    private JsonReader json(String option, String text) {
        CodecBuffers buffers = context.buffers();
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        byte[] padded = buffers.text(bytes.length);
        System.arraycopy(bytes, 0, padded, 0, bytes.length);
        buffers.reader.reset(padded, 0, bytes.length);
        buffers.reader.describe("'" + option + "' of the request");
        return buffers.reader;
    }
}
