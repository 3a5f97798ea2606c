// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.codec;

import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.observe.RequestTrace;
import io.nereid.protocols.v2.memory.CudaInputs;
import io.nereid.protocols.v2.memory.RawTensors;
import io.nereid.protocols.v2.memory.SharedMemoryOutput;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
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
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Decodes an inference request from the body of an HTTP request: JSON, JSON followed by binary tensor data, or a raw
 * binary request, whose body is the only input. Confined to one thread; used once.
 */
public final class RestInferReader {
    private static final String HEADER_LENGTH = "inference-header-content-length";

    private final CodecContext context;
    private final HttpExchange exchange;
    private final ModelRef model;
    private @Nullable RequestTrace trace;
    private final CodecBuffers buffers;
    private final JsonReader json;
    private final MemoryRegion body;
    private final RequestParameters parameters = new RequestParameters(false);
    private final ArrayList<Tensor> inputs = new ArrayList<>(4);
    private final boolean headerGiven;
    private final int jsonLength;
    private List<RequestedOutput> outputs = List.of();
    private List<String> binaryNames = List.of();
    private List<SharedMemoryOutput> shared = List.of();
    private @Nullable CudaInputs cuda;
    private OutputEncoding form = OutputEncoding.JSON;
    private String id = "";
    private int binaryAt;

    /** The parameters of the output that is being read. */
    private int outputClasses;

    private boolean outputBinary;
    private @Nullable String region;
    private long regionSize;
    private long regionOffset;

    /** Reads the headers only. */
    public RestInferReader(CodecContext context, HttpExchange exchange, ModelRef model, @Nullable RequestTrace trace) {
        this.context = context;
        this.exchange = exchange;
        this.model = model;
        this.trace = trace;
        this.buffers = context.buffers();
        this.json = buffers.reader;
        this.body = exchange.body();
        String header = exchange.header(HEADER_LENGTH);
        this.headerGiven = header != null;
        this.jsonLength = header == null ? body.size() : headerLength(header);
    }

    /** The number of bytes of JSON in the body of a request. */
    public static int jsonLength(HttpExchange exchange) {
        int size = exchange.body().size();
        String header = exchange.header(HEADER_LENGTH);
        return header == null || size <= 0 ? size : Math.min(size, header.length() > 9 ? size : digits(header));
    }

    private static int digits(String text) {
        int n = 0;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c < '0' || c > '9') {
                return Integer.MAX_VALUE;
            }
            n = n * 10 + (c - '0');
        }
        return text.isEmpty() ? Integer.MAX_VALUE : n;
    }

    private int headerLength(String header) {
        int n = header.length() > 9 ? Integer.MAX_VALUE : digits(header.strip());
        if (n > body.size()) {
            throw ServingException.invalidArgument(
                    "inference header size should be in range (0, " + body.size() + "), got: " + header,
                    "set Inference-Header-Content-Length to the number of bytes of JSON");
        }
        return n;
    }

    /** Reads the request; the caller owns its inputs. */
    public InferenceRequest read() {
        boolean done = false;
        try {
            if (headerGiven && jsonLength == 0) {
                readRaw();
            } else {
                readJson();
            }
            forwardHeaders(context, exchange, parameters);
            trace = parameters.observed(trace, exchange.arrivedNanos());
            cuda = buffers.takeCuda();
            done = true;
            return new InferenceRequest(
                    model,
                    id,
                    inputs,
                    outputs,
                    parameters.forModel(),
                    Long.MAX_VALUE,
                    exchange.arrivedNanos(),
                    parameters.options(trace),
                    exchange.caller());
        } finally {
            buffers.tensors.missing(null);
            buffers.tidy();
            if (!done) {
                buffers.cuda.close();
                Tensor.closeAll(inputs);
                SharedMemoryOutput.closeAll(shared);
            }
        }
    }

    /** Forwards to the model the headers that the options select. */
    public static void forwardHeaders(CodecContext context, HttpExchange exchange, RequestParameters parameters) {
        Pattern pattern = context.options.httpHeaders();
        if (pattern != null) {
            exchange.headers((name, value) -> {
                if (pattern.matcher(name).find()) {
                    parameters.forward(name, value);
                }
            });
        }
    }

    /** The trace of the request, with its times if the request asks for them; valid after {@link #read()}. */
    public @Nullable RequestTrace trace() {
        return trace;
    }

    /**
     * The inputs of the request that are still to be copied from GPUs, for the caller to fetch; null when there are none.
     * Valid after {@link #read()}.
     */
    public @Nullable CudaInputs cudaInputs() {
        return cuda;
    }

    /** How to encode the outputs; valid after {@link #read()}. */
    public OutputEncoding form() {
        return form;
    }

    /** Whether a null is a missing value of the model; asked only when a request has one. */
    private boolean takesMissingValues() {
        try {
            return context.engine.metadata(model).properties().containsKey(ModelMetadata.MISSING_VALUES);
        } catch (ServingException e) {
            // The model is not there, which its request will say.
            return false;
        }
    }

    private void readJson() {
        byte[] text = buffers.text(jsonLength);
        body.getBytes(0, text, 0, jsonLength);
        json.reset(text, 0, jsonLength);
        binaryAt = jsonLength;
        buffers.tensors.missing(this::takesMissingValues);
        try {
            readRequest();
            json.expectEnd();
        } catch (ServingException e) {
            throw explain(e);
        }
        if (binaryAt != body.size()) {
            throw ServingException.invalidArgument(
                    "unexpected additional input data for model '" + model.model() + "'",
                    "the inputs take " + (binaryAt - jsonLength) + " bytes after the JSON, the body has "
                            + (body.size() - jsonLength));
        }
        if (!outputs.isEmpty()) {
            form = binaryNames.isEmpty() && shared.isEmpty()
                    ? OutputEncoding.JSON
                    : new OutputEncoding(true, binaryNames, false, false, shared);
        } else if (parameters.binaryOutputs()) {
            form = OutputEncoding.BINARY;
        }
    }

    /**
     * Adds a hint to a syntax error in a body of content type {@code application/octet-stream}: most likely the header
     * with the length of the JSON is missing.
     */
    private ServingException explain(ServingException e) {
        String type = headerGiven ? null : exchange.header("content-type");
        if (type == null || !type.startsWith("application/octet-stream") || e.remedy() != null) {
            return e;
        }
        return ServingException.of(
                e.code(), e.getMessage(), "a body with binary tensors needs header Inference-Header-Content-Length");
    }

    private void readRequest() {
        boolean seen = false;
        json.beginObject();
        while (json.nextField()) {
            if (json.keyEquals("inputs")) {
                if (seen) {
                    throw ServingException.invalidArgument("the request has more than one 'inputs'");
                }
                seen = true;
                readInputs();
            } else if (json.keyEquals("id")) {
                id = json.tryNull() ? "" : json.readString();
            } else if (json.keyEquals("outputs")) {
                readOutputs();
            } else if (json.keyEquals("parameters")) {
                readParameters();
            } else {
                json.skipValue();
            }
        }
        if (!seen) {
            throw ServingException.invalidArgument(
                    "the request has no 'inputs' (expected an array of objects with name, shape, datatype and data)");
        }
    }

    private void readParameters() {
        if (json.tryNull()) {
            return;
        }
        json.beginObject();
        while (json.nextField()) {
            readParameter(json, json.key(), parameters);
        }
    }

    /** Reads the value of one parameter of the request; JSON's null is the same as an absent parameter. */
    public static void readParameter(JsonReader json, String name, RequestParameters parameters) {
        JsonToken token = json.peek();
        switch (token) {
            case STRING -> parameters.put(name, json.readString());
            case BOOLEAN -> parameters.put(name, json.readBoolean());
            case NUMBER -> parameters.put(name, number(json, name));
            case NULL -> json.readNull();
            default ->
                throw ServingException.invalidArgument("parameter '" + name
                        + "' has invalid type. It should be either 'int', 'bool', 'string', or 'double'.");
        }
    }

    private static Object number(JsonReader json, String name) {
        if (!json.isIntegral()) {
            return json.readDouble();
        }
        return name.equals("sequence_id") ? json.readUnsignedLong() : json.readLong();
    }

    private void readInputs() {
        json.beginArray();
        while (json.hasNext()) {
            RestInputReader input = new RestInputReader(context, buffers, model.model(), inputs.size());
            Tensor tensor = input.read(jsonLength);
            if (tensor == null) {
                tensor = binary(input);
            }
            inputs.add(tensor);
            CodecBuffers.checkCount(inputs.size(), "inputs");
            for (int i = 0; i < inputs.size() - 1; i++) {
                if (inputs.get(i).name().equals(tensor.name())) {
                    throw ServingException.invalidArgument("input '" + tensor.name() + "' already exists in request");
                }
            }
        }
    }

    private Tensor binary(RestInputReader input) {
        if (!headerGiven) {
            throw ServingException.invalidArgument("must specify valid 'Infer-Header-Content-Length' in request header"
                    + " and 'binary_data_size' when passing inputs in binary data format");
        }
        long size = input.binarySize();
        if (size > body.size() - binaryAt) {
            throw ServingException.invalidArgument("unexpected size for input '" + input.name() + "', expecting "
                    + (size - (body.size() - binaryAt)) + " additional bytes for model '" + model.model() + "'");
        }
        Tensor tensor =
                RawTensors.view(input.name(), input.type(), input.shape(), body, binaryAt, (int) size, model.model());
        binaryAt += (int) size;
        return tensor;
    }

    private void readOutputs() {
        if (json.tryNull()) {
            return;
        }
        SharedMemoryOutput.closeAll(shared);
        shared = List.of();
        ArrayList<RequestedOutput> list = new ArrayList<>(4);
        ArrayList<String> binary = new ArrayList<>(4);
        json.beginArray();
        while (json.hasNext()) {
            readOutput(list, binary);
        }
        outputs = list;
        binaryNames = binary;
    }

    private void readOutput(List<RequestedOutput> list, List<String> binary) {
        String name = null;
        outputClasses = 0;
        outputBinary = false;
        region = null;
        regionSize = -1;
        regionOffset = 0;
        json.beginObject();
        while (json.nextField()) {
            if (json.keyEquals("name")) {
                name = buffers.name();
            } else if (json.keyEquals("parameters")) {
                if (!json.tryNull()) {
                    readOutputParameters();
                }
            } else {
                json.skipValue();
            }
        }
        if (name == null) {
            throw ServingException.invalidArgument("output " + list.size() + " of the request has no 'name'");
        }
        for (RequestedOutput other : list) {
            if (other.name().equals(name)) {
                throw ServingException.invalidArgument("output '" + name + "' already exists in request");
            }
        }
        if (region != null) {
            if (outputBinary || outputClasses > 0) {
                throw ServingException.invalidArgument("Output can't set both 'shared_memory_region' and '"
                        + (outputBinary ? "binary_data" : "classification") + "'");
            }
            share(name, region, regionOffset, regionSize);
        }
        list.add(new RequestedOutput(name, outputClasses));
        CodecBuffers.checkCount(list.size(), "outputs");
        if (outputBinary) {
            binary.add(name);
        }
    }

    private void readOutputParameters() {
        json.beginObject();
        while (json.nextField()) {
            if (json.keyEquals("binary_data")) {
                outputBinary = json.readBoolean();
            } else if (json.keyEquals("classification")) {
                outputClasses = classes(json.readLong());
            } else if (json.keyEquals("shared_memory_region")) {
                region = json.readString();
            } else if (json.keyEquals("shared_memory_byte_size")) {
                regionSize = json.readLong();
            } else if (json.keyEquals("shared_memory_offset")) {
                regionOffset = json.readLong();
            } else {
                json.skipValue();
            }
        }
    }

    private void share(String name, String region, long offset, long size) {
        if (size < 0) {
            throw ServingException.invalidArgument("output '" + name
                    + "' has 'shared_memory_region' without 'shared_memory_byte_size' (expected: >= 0)");
        }
        if (shared.isEmpty()) {
            shared = new ArrayList<>(4);
        }
        shared.add(context.sharedMemory.output(name, region, offset, size));
    }

    static int classes(long count) {
        if (count < 0 || count > Integer.MAX_VALUE) {
            throw ServingException.invalidArgument(
                    "invalid value for 'classification' parameter, got " + count + ", expected >= 0");
        }
        return (int) count;
    }

    /**
     * Reads a raw binary request: the whole body is the model's only input, whose shape is deduced from the metadata.
     */
    private void readRaw() {
        ModelMetadata metadata = context.engine.metadata(model);
        int count = metadata.inputs().size();
        if (count != 1) {
            throw ServingException.invalidArgument("Raw request must only have 1 input (found " + count
                    + ") to be deduced but got " + count + " inputs in '" + model.model() + "' model configuration");
        }
        TensorSpec input = metadata.inputs().get(0);
        long[] dims = input.shape().dims();
        boolean batched = metadata.maxBatchSize() > 0 && dims.length > 0;
        if (batched) {
            dims[0] = 1;
        }
        if (input.dataType() == DataType.BYTES) {
            inputs.add(rawText(input, dims, batched));
        } else {
            inputs.add(rawNumbers(input, dims));
        }
        form = OutputEncoding.BINARY;
    }

    private Tensor rawText(TensorSpec input, long[] dims, boolean batched) {
        int at = batched ? 1 : 0;
        if (dims.length != at + 1 || (dims[at] != 1 && dims[at] != -1)) {
            throw ServingException.invalidArgument(
                    "For BYTE datatype raw input '" + input.name() + "', the model must have input shape [1]");
        }
        dims[at] = 1;
        MemoryRegion region = MemoryRegion.allocate(Math.addExact(body.size(), 4));
        region.setInt(0, body.size());
        region.setBytes(4, body, 0, body.size());
        return Tensor.over(input.name(), DataType.BYTES, Shape.of(dims), region, 0, region.size());
    }

    private Tensor rawNumbers(TensorSpec input, long[] dims) {
        int open = -1;
        long known = input.dataType().size();
        for (int i = 0; i < dims.length; i++) {
            if (dims[i] >= 0) {
                known = Math.multiplyExact(known, dims[i]);
            } else if (open >= 0) {
                throw ServingException.invalidArgument("The shape of the raw input '" + input.name()
                        + "' can not be deduced because there are more than one variable-sized dimension");
            } else {
                open = i;
            }
        }
        if (open >= 0) {
            dims[open] = known == 0 ? 0 : body.size() / known;
        }
        return RawTensors.view(input.name(), input.dataType(), Shape.of(dims), body, 0, body.size(), model.model());
    }
}
