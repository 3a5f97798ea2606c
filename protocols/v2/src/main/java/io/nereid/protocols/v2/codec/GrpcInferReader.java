// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.codec;

import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.observe.RequestTrace;
import io.nereid.protobuf.ProtobufReader;
import io.nereid.protocols.v2.memory.CudaInputs;
import io.nereid.protocols.v2.memory.RawTensors;
import io.nereid.protocols.v2.memory.SharedMemoryManager;
import io.nereid.protocols.v2.memory.SharedMemoryOutput;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Decodes {@code ModelInferRequest} from its bytes, without generated classes: raw contents become views of the message
 * and are not copied; only typed contents are converted. As protobuf requires, fields may come in any order,
 * repeatedly, packed or not, and unknown fields are skipped.
 *
 * <p>Two passes: {@link #scan} records where the tensors are, {@link #read} creates them. In between the caller can
 * move large conversions to the codec pool. Confined to one thread, which uses it for one message after the other.
 */
public final class GrpcInferReader {
    /** One input after the scan, before its data is read. Reused for later messages. */
    private static final class Input {
        String name = "";

        @Nullable DataType type;

        Shape shape = Shape.SCALAR;
        int firstContent;
        int lastContent;
        /** The shared memory region that holds its data; null when the message does. */
        @Nullable String region;

        long regionOffset;
        long regionBytes;
    }

    private final CodecBuffers buffers;
    private final SharedMemoryManager sharedMemory;
    private final ProtobufReader wire;
    private final InferParameterReader parameter;
    private final ByteRanges inputRanges = new ByteRanges();
    private final ByteRanges outputRanges = new ByteRanges();
    private final ByteRanges rawRanges = new ByteRanges();
    private final ByteRanges contentRanges = new ByteRanges();
    private final ArrayList<Input> inputs = new ArrayList<>();
    private RequestParameters parameters = new RequestParameters(true);
    private String model = "";
    private String version = "";
    private String id = "";
    private int sharedInputs;
    private List<SharedMemoryOutput> shared = List.of();
    private MemoryRegion message = MemoryRegion.empty();
    private @Nullable RequestTrace observed;

    GrpcInferReader(CodecBuffers buffers, SharedMemoryManager sharedMemory) {
        this.buffers = buffers;
        this.sharedMemory = sharedMemory;
        this.wire = buffers.wire;
        this.parameter = new InferParameterReader(wire, buffers.names);
    }

    /**
     * First pass over a message. The caller keeps the message until {@link #read} has returned.
     *
     * @return the number of bytes of typed contents, whose conversion takes time
     */
    public long scan(MemoryRegion region) {
        message = region;
        wire.reset(region.buffer(0, region.size()));
        observed = null;
        model = "";
        version = "";
        id = "";
        sharedInputs = 0;
        shared = List.of();
        parameters = new RequestParameters(true);
        inputRanges.clear();
        outputRanges.clear();
        rawRanges.clear();
        contentRanges.clear();
        while (wire.hasMore()) {
            int tag = wire.readTag();
            switch (tag) {
                case 1 << 3 | ProtobufReader.BYTES -> model = wire.readText(buffers.names);
                case 2 << 3 | ProtobufReader.BYTES -> version = wire.readText(buffers.names);
                case 3 << 3 | ProtobufReader.BYTES -> id = wire.readText(buffers.names);
                case 4 << 3 | ProtobufReader.BYTES -> {
                    parameter.readEntry();
                    Object value = parameter.value();
                    if (value != null) {
                        parameters.put(parameter.key(), value);
                    }
                }
                case 5 << 3 | ProtobufReader.BYTES -> inputRanges.addNext(wire);
                case 6 << 3 | ProtobufReader.BYTES -> outputRanges.addNext(wire);
                case 7 << 3 | ProtobufReader.BYTES -> rawRanges.addNext(wire);
                default -> wire.skipField(tag);
            }
        }
        CodecBuffers.checkCount(inputRanges.count(), "inputs");
        CodecBuffers.checkCount(outputRanges.count(), "outputs");
        for (int i = 0; i < inputRanges.count(); i++) {
            if (i == inputs.size()) {
                inputs.add(new Input());
            }
            scanInput(inputs.get(i), i);
        }
        return contentRanges.bytes();
    }

    public String id() {
        return id;
    }

    public String model() {
        return model;
    }

    /**
     * How to encode the outputs for the message last {@link #read}: raw, unless the inputs were typed. The caller
     * closes it.
     */
    public OutputEncoding form() {
        boolean raw = rawRanges.count() > 0 || sharedInputs > 0 || inputRanges.count() == 0;
        boolean emptyFinal = parameters.emptyFinalResponse();
        if (!emptyFinal && shared.isEmpty()) {
            return raw ? OutputEncoding.BINARY : OutputEncoding.JSON;
        }
        OutputEncoding form = new OutputEncoding(false, List.of(), raw, emptyFinal, shared);
        shared = List.of();
        return form;
    }

    /**
     * The inputs of the message last {@link #read} that are still to be copied from GPUs, which the caller fetches; null
     * when there are none.
     */
    public @Nullable CudaInputs cudaInputs() {
        return buffers.takeCuda();
    }

    private void scanInput(Input input, int index) {
        input.name = "";
        input.type = null;
        input.region = null;
        input.regionOffset = 0;
        input.regionBytes = -1;
        input.firstContent = contentRanges.count();
        String typeName = "";
        int rank = 0;
        long[] dims = buffers.dims(8);
        wire.range(inputRanges.start(index), inputRanges.end(index));
        while (wire.hasMore()) {
            int tag = wire.readTag();
            switch (tag) {
                case 1 << 3 | ProtobufReader.BYTES -> input.name = wire.readText(buffers.names);
                case 2 << 3 | ProtobufReader.BYTES -> typeName = wire.readText(buffers.names);
                case 3 << 3 | ProtobufReader.VARINT -> {
                    dims = buffers.dims(rank + 1);
                    dims[rank++] = wire.readVarint();
                }
                case 3 << 3 | ProtobufReader.BYTES -> {
                    int end = wire.readLength() + wire.position();
                    int outer = wire.end();
                    wire.range(wire.position(), end);
                    while (wire.hasMore()) {
                        dims = buffers.dims(rank + 1);
                        dims[rank++] = wire.readVarint();
                    }
                    wire.range(end, outer);
                }
                case 4 << 3 | ProtobufReader.BYTES -> {
                    parameter.readEntry();
                    shareInput(input);
                }
                case 5 << 3 | ProtobufReader.BYTES -> contentRanges.addNext(wire);
                default -> wire.skipField(tag);
            }
        }
        input.lastContent = contentRanges.count();
        String label = "input '" + input.name + "'";
        input.type = DataType.ofWireName(typeName);
        if (input.type == null) {
            throw RestInputReader.unknownType(label, typeName);
        }
        input.shape = RestInputReader.shape(label, dims, rank);
        if (input.region != null) {
            sharedInputs++;
            if (input.regionBytes < 0) {
                throw missingByteSize(label);
            }
        }
    }

    private void shareInput(Input input) {
        switch (parameter.key()) {
            case "shared_memory_region" -> input.region = text();
            case "shared_memory_offset" -> input.regionOffset = number();
            case "shared_memory_byte_size" -> input.regionBytes = number();
            default -> {
                // Other parameters of inputs are ignored.
            }
        }
    }

    private String text() {
        if (parameter.value() instanceof String s) {
            return s;
        }
        throw ServingException.invalidArgument(
                "invalid value type for '" + parameter.key() + "' parameter, expected string_param.");
    }

    private long number() {
        if (parameter.value() instanceof Long n) {
            return n;
        }
        throw ServingException.invalidArgument(
                "invalid value type for '" + parameter.key() + "' parameter, expected int64_param.");
    }

    private static ServingException missingByteSize(String label) {
        return ServingException.invalidArgument(
                label + " has 'shared_memory_region' without 'shared_memory_byte_size' (expected: >= 0)");
    }

    /** The trace of the request, with its times if the request asks for them; valid after {@link #read}. */
    public @Nullable RequestTrace trace() {
        return observed;
    }

    /**
     * Second pass: the request of the scanned message. The caller owns its inputs.
     *
     * @param forwarded metadata for the model, by name
     * @param caller who makes the call
     */
    public InferenceRequest read(
            long deadlineNanos,
            long arrivedNanos,
            @Nullable RequestTrace trace,
            Map<String, String> forwarded,
            Caller caller) {
        ArrayList<Tensor> tensors = new ArrayList<>(Math.max(1, inputRanges.count()));
        boolean done = false;
        try {
            List<RequestedOutput> outputs = readOutputs();
            if (!forwarded.isEmpty()) {
                forwarded.forEach(parameters::forward);
            }
            observed = parameters.observed(trace, arrivedNanos);
            InferenceRequest request = new InferenceRequest(
                    ModelReferences.reference(model, version),
                    id,
                    tensors,
                    outputs,
                    parameters.forModel(),
                    deadlineNanos,
                    arrivedNanos,
                    parameters.options(observed),
                    caller);
            readTensors(tensors);
            done = true;
            return request;
        } finally {
            if (!done) {
                Tensor.closeAll(tensors);
                buffers.cuda.close();
                SharedMemoryOutput.closeAll(shared);
                shared = List.of();
            }
            message = MemoryRegion.empty();
            wire.clear();
        }
    }

    private void readTensors(List<Tensor> tensors) {
        int raw = rawRanges.count();
        int expected = inputRanges.count() - sharedInputs;
        if (raw > expected) {
            throw ServingException.invalidArgument("expected " + expected
                    + " entries of raw_input_contents, one for each input, but got " + raw + " for model '" + model
                    + "'");
        }
        int next = 0;
        for (int i = 0; i < inputRanges.count(); i++) {
            Input input = inputs.get(i);
            checkNew(input, i);
            if (input.region != null) {
                tensors.add(shared(input, input.region));
            } else if (raw > 0) {
                tensors.add(raw(input, next++));
            } else {
                tensors.add(typed(input));
            }
        }
    }

    private void checkNew(Input input, int index) {
        for (int j = 0; j < index; j++) {
            if (inputs.get(j).name.equals(input.name)) {
                throw ServingException.invalidArgument("input '" + input.name + "' already exists in request");
            }
        }
    }

    private Tensor shared(Input input, String region) {
        if (contentRanges.bytes(input.firstContent, input.lastContent) > 0) {
            throw ServingException.invalidArgument("unexpected 'content' provided when using shared memory for input '"
                    + input.name + "' for model '" + model + "'");
        }
        return sharedMemory.input(
                input.name,
                type(input),
                input.shape,
                region,
                input.regionOffset,
                input.regionBytes,
                model,
                buffers.cuda);
    }

    private Tensor raw(Input input, int index) {
        if (contentRanges.bytes(input.firstContent, input.lastContent) > 0) {
            throw ServingException.invalidArgument(
                    "contents field must not be specified when using raw_input_contents for '" + input.name
                            + "' for model '" + model + "'");
        }
        if (index >= rawRanges.count()) {
            throw missing(input);
        }
        int start = rawRanges.start(index);
        return RawTensors.view(
                input.name, type(input), input.shape, message, start, rawRanges.end(index) - start, model);
    }

    private static DataType type(Input input) {
        DataType type = input.type;
        if (type == null) {
            throw new IllegalStateException("an input without a type");
        }
        return type;
    }

    private ServingException missing(Input input) {
        return ServingException.invalidArgument(
                "unable to find data for input tensor '" + input.name + "' for model '" + model + "' in request.");
    }

    private Tensor typed(Input input) {
        TypedContentsReader contents = new TypedContentsReader(wire, message, input.name, type(input), model);
        for (int i = input.firstContent; i < input.lastContent; i++) {
            wire.range(contentRanges.start(i), contentRanges.end(i));
            contents.count();
        }
        if (contents.isEmpty() && input.shape.elementCount() > 0) {
            throw missing(input);
        }
        Tensor tensor = contents.allocate(input.shape);
        boolean done = false;
        try {
            for (int i = input.firstContent; i < input.lastContent; i++) {
                wire.range(contentRanges.start(i), contentRanges.end(i));
                contents.copy(tensor);
            }
            done = true;
            return tensor;
        } finally {
            if (!done) {
                tensor.close();
            }
        }
    }

    private List<RequestedOutput> readOutputs() {
        int count = outputRanges.count();
        if (count == 0) {
            return List.of();
        }
        RequestedOutput[] outputs = new RequestedOutput[count];
        for (int i = 0; i < count; i++) {
            wire.range(outputRanges.start(i), outputRanges.end(i));
            RequestedOutput output = readOutput();
            for (int j = 0; j < i; j++) {
                if (outputs[j].name().equals(output.name())) {
                    throw ServingException.invalidArgument("output '" + output.name() + "' already exists in request");
                }
            }
            outputs[i] = output;
        }
        return Arrays.asList(outputs);
    }

    private RequestedOutput readOutput() {
        String name = "";
        int classes = 0;
        String region = null;
        long offset = 0;
        long bytes = -1;
        while (wire.hasMore()) {
            int tag = wire.readTag();
            switch (tag) {
                case 1 << 3 | ProtobufReader.BYTES -> name = wire.readText(buffers.names);
                case 2 << 3 | ProtobufReader.BYTES -> {
                    parameter.readEntry();
                    switch (parameter.key()) {
                        case "classification" -> classes = RestInferReader.classes(number());
                        case "shared_memory_region" -> region = text();
                        case "shared_memory_offset" -> offset = number();
                        case "shared_memory_byte_size" -> bytes = number();
                        default -> {
                            // Other parameters of outputs are ignored.
                        }
                    }
                }
                default -> wire.skipField(tag);
            }
        }
        if (region != null) {
            share(name, classes, region, offset, bytes);
        }
        return new RequestedOutput(name, classes);
    }

    private void share(String output, int classes, String region, long offset, long bytes) {
        if (classes > 0) {
            throw ServingException.invalidArgument("Output can't set both 'shared_memory_region' and 'classification'");
        }
        if (bytes < 0) {
            throw missingByteSize("output '" + output + "'");
        }
        if (shared.isEmpty()) {
            shared = new ArrayList<>(4);
        }
        shared.add(sharedMemory.output(output, region, offset, bytes));
    }
}
