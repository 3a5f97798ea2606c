// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.rest;

import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.observe.RequestTrace;
import io.nereid.protocols.v2.codec.CodecBuffers;
import io.nereid.protocols.v2.codec.CodecContext;
import io.nereid.protocols.v2.codec.RequestParameters;
import io.nereid.protocols.v2.codec.RestInferReader;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.HttpExchange;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Decodes a generate request: a JSON object whose members are inputs of the model, by name; all others are parameters.
 * Confined to one thread; used once.
 */
final class GenerateRequestReader {
    private final CodecContext context;
    private final HttpExchange exchange;
    private final ModelRef model;
    private final ModelMetadata metadata;
    private final CodecBuffers buffers;
    private final JsonReader json;
    private final RequestParameters parameters = new RequestParameters(false);
    private final ArrayList<Tensor> inputs = new ArrayList<>(4);
    private String id = "";
    private @Nullable RequestTrace trace;

    GenerateRequestReader(CodecContext context, HttpExchange exchange, ModelRef model, ModelMetadata metadata) {
        this.context = context;
        this.exchange = exchange;
        this.model = model;
        this.metadata = metadata;
        this.buffers = context.buffers();
        this.json = buffers.reader;
    }

    /** Reads the request; the caller owns its inputs. */
    InferenceRequest read(@Nullable RequestTrace given) {
        MemoryRegion body = exchange.body();
        int length = body.size();
        byte[] text = buffers.text(length);
        body.getBytes(0, text, 0, length);
        json.reset(text, 0, length);
        boolean done = false;
        try {
            readObject(true);
            json.expectEnd();
            RestInferReader.forwardHeaders(context, exchange, parameters);
            trace = parameters.observed(given, exchange.arrivedNanos());
            done = true;
            return new InferenceRequest(
                    model,
                    id,
                    inputs,
                    List.of(),
                    parameters.forModel(),
                    Long.MAX_VALUE,
                    exchange.arrivedNanos(),
                    parameters.options(trace),
                    exchange.caller());
        } finally {
            buffers.tidy();
            if (!done) {
                Tensor.closeAll(inputs);
            }
        }
    }

    /** The trace of the request, with its times if the request asks for them; valid after {@link #read}. */
    @Nullable RequestTrace trace() {
        return trace;
    }

    private void readObject(boolean outermost) {
        json.beginObject();
        while (json.nextField()) {
            String key = json.key();
            TensorSpec spec = find(key);
            boolean nested = outermost && key.equals("parameters") && json.peek() == JsonToken.OBJECT;
            if (nested) {
                if (spec != null) {
                    throw ServingException.invalidArgument("Converting keyword: '" + key + "': parameter keyword '"
                            + key + "' for nested schema also given as input tensor name");
                }
                readObject(false);
            } else if (spec != null) {
                readInput(spec);
            } else if (outermost && key.equals("id")) {
                id = json.tryNull() ? "" : json.readString();
            } else {
                RestInferReader.readParameter(json, key, parameters);
            }
        }
    }

    private @Nullable TensorSpec find(String name) {
        for (TensorSpec input : metadata.inputs()) {
            if (input.name().equals(name)) {
                return input;
            }
        }
        return null;
    }

    private void readInput(TensorSpec spec) {
        if (json.tryNull()) {
            return;
        }
        String name = spec.name();
        for (Tensor other : inputs) {
            if (other.name().equals(name)) {
                throw ServingException.invalidArgument("input '" + name + "' already exists in request");
            }
        }
        DataType type = spec.dataType();
        json.describe("input '" + name + "'");
        buffers.elements.reset();
        buffers.tensors.readNested(type, buffers.elements);
        json.describe(null);
        int length = buffers.elements.length();
        if (length > context.options.maxTensorBytes()) {
            throw ServingException.invalidArgument("JSON input '" + name + "' has a byte_size (" + length
                    + " bytes) that exceeds the maximum allowed value of " + context.options.maxTensorBytes()
                    + " bytes.");
        }
        Shape shape = shape(spec, buffers.tensors.count());
        MemoryRegion region = MemoryRegion.copyOf(buffers.elements.array(), 0, length);
        inputs.add(Tensor.over(name, type, shape, region, 0, length));
    }

    /** The shape of one row: fixed dimensions stay, the innermost variable one takes all elements, other ones are 1. */
    private Shape shape(TensorSpec spec, long count) {
        long[] dims = spec.shape().dims();
        int open = -1;
        long known = 1;
        for (int i = 0; i < dims.length; i++) {
            if (i == 0 && metadata.maxBatchSize() > 0) {
                dims[i] = 1;
            } else if (dims[i] < 0) {
                if (open >= 0) {
                    dims[open] = 1;
                }
                open = i;
            } else {
                known = Math.multiplyExact(known, dims[i]);
            }
        }
        boolean fits = open < 0 ? known == count : known > 0 && count % known == 0;
        if (!fits) {
            throw ServingException.invalidArgument("input '" + spec.name() + "' of model '" + model.model()
                    + "' has shape " + spec.shape() + ", which " + count + " elements do not fill");
        }
        if (open >= 0) {
            dims[open] = count / known;
        }
        return Shape.of(dims);
    }
}
