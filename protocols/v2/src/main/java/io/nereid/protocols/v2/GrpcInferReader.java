// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Reads {@code ModelInferRequest} from its bytes. Raw contents become views of the message; only typed contents are
 * converted. Fields may come in any order, repeatedly, packed or not; unknown ones are passed over. Confined to one thread,
 * which uses it for one message after the other.
 */
final class GrpcInferReader {
    /** What is known of one input before its data is looked at. */
    private static final class Input {
        String name = "";

        @Nullable DataType type;

        Shape shape = Shape.SCALAR;
        int firstContent;
        int lastContent;
    }

    private final Workbench bench;
    private final WireReader wire;
    private final ParameterReader parameter;
    private final Ranges inputRanges = new Ranges();
    private final Ranges outputRanges = new Ranges();
    private final Ranges rawRanges = new Ranges();
    private final Ranges contentRanges = new Ranges();
    private final ArrayList<Input> inputs = new ArrayList<>();
    private RequestParameters parameters = new RequestParameters(true);
    private String model = "";
    private String version = "";
    private String id = "";
    private MemoryRegion message = MemoryRegion.empty();

    GrpcInferReader(Workbench bench) {
        this.bench = bench;
        this.wire = bench.wire;
        this.parameter = new ParameterReader(wire, bench.names);
    }

    /**
     * Looks through a message. The caller keeps it until {@link #read} is done.
     *
     * @return bytes of typed contents, whose conversion takes time
     */
    long scan(MemoryRegion region) {
        message = region;
        wire.reset(region.nio(0, region.size()));
        model = "";
        version = "";
        id = "";
        parameters = new RequestParameters(true);
        inputRanges.clear();
        outputRanges.clear();
        rawRanges.clear();
        contentRanges.clear();
        while (wire.hasMore()) {
            int tag = wire.readTag();
            switch (tag) {
                case 1 << 3 | WireReader.BYTES -> model = wire.readText(bench.names);
                case 2 << 3 | WireReader.BYTES -> version = wire.readText(bench.names);
                case 3 << 3 | WireReader.BYTES -> id = wire.readText(bench.names);
                case 4 << 3 | WireReader.BYTES -> {
                    parameter.readEntry();
                    Object value = parameter.value();
                    if (value != null) {
                        parameters.put(parameter.key(), value);
                    }
                }
                case 5 << 3 | WireReader.BYTES -> inputRanges.addNext(wire);
                case 6 << 3 | WireReader.BYTES -> outputRanges.addNext(wire);
                case 7 << 3 | WireReader.BYTES -> rawRanges.addNext(wire);
                default -> wire.skipField(tag);
            }
        }
        Workbench.checkCount(inputRanges.count(), "inputs");
        Workbench.checkCount(outputRanges.count(), "outputs");
        for (int i = 0; i < inputRanges.count(); i++) {
            if (i == inputs.size()) {
                inputs.add(new Input());
            }
            scanInput(inputs.get(i), i);
        }
        return contentRanges.bytes();
    }

    String id() {
        return id;
    }

    /** How the outputs of the message last read are to be written: raw unless the inputs came typed. */
    OutputForm form() {
        boolean typed = rawRanges.count() == 0 && inputRanges.count() > 0;
        boolean emptyFinal = parameters.emptyFinalResponse();
        return typed
                ? emptyFinal ? new OutputForm(false, List.of(), false, true) : OutputForm.JSON
                : emptyFinal ? new OutputForm(false, List.of(), true, true) : OutputForm.BINARY;
    }

    private void scanInput(Input input, int index) {
        input.name = "";
        input.type = null;
        input.firstContent = contentRanges.count();
        String typeName = "";
        int rank = 0;
        long[] dims = bench.dims(8);
        wire.range(inputRanges.start(index), inputRanges.end(index));
        while (wire.hasMore()) {
            int tag = wire.readTag();
            switch (tag) {
                case 1 << 3 | WireReader.BYTES -> input.name = wire.readText(bench.names);
                case 2 << 3 | WireReader.BYTES -> typeName = wire.readText(bench.names);
                case 3 << 3 | WireReader.VARINT -> {
                    dims = bench.dims(rank + 1);
                    dims[rank++] = wire.readVarint();
                }
                case 3 << 3 | WireReader.BYTES -> {
                    int end = wire.readLength() + wire.position();
                    int outer = wire.end();
                    wire.range(wire.position(), end);
                    while (wire.hasMore()) {
                        dims = bench.dims(rank + 1);
                        dims[rank++] = wire.readVarint();
                    }
                    wire.range(end, outer);
                }
                case 4 << 3 | WireReader.BYTES -> {
                    parameter.readEntry();
                    if (parameter.key().equals("shared_memory_region")) {
                        throw sharedMemory();
                    }
                }
                case 5 << 3 | WireReader.BYTES -> contentRanges.addNext(wire);
                default -> wire.skipField(tag);
            }
        }
        input.lastContent = contentRanges.count();
        String label = "input '" + input.name + "'";
        input.type = DataType.ofWireName(typeName);
        if (input.type == null) {
            throw RestInput.unknownType(label, typeName);
        }
        input.shape = RestInput.shape(label, dims, rank);
    }

    /** The request that {@link #scan} looked through; its inputs belong to the caller. */
    InferenceRequest read(long deadlineNanos, long arrivedNanos) {
        List<RequestedOutput> outputs = readOutputs();
        ArrayList<Tensor> tensors = new ArrayList<>(Math.max(1, inputRanges.count()));
        boolean done = false;
        try {
            InferenceRequest request = new InferenceRequest(
                    Names.reference(model, version),
                    id,
                    tensors,
                    outputs,
                    parameters.forModel(),
                    deadlineNanos,
                    arrivedNanos,
                    parameters.options(null));
            readTensors(tensors);
            done = true;
            return request;
        } finally {
            if (!done) {
                Tensor.closeAll(tensors);
            }
            message = MemoryRegion.empty();
            wire.clear();
        }
    }

    private void readTensors(List<Tensor> tensors) {
        int raw = rawRanges.count();
        if (raw > inputRanges.count()) {
            throw ServingException.invalidArgument("expected " + inputRanges.count()
                    + " entries of raw_input_contents, one for each input, but got " + raw + " for model '" + model
                    + "'");
        }
        for (int i = 0; i < inputRanges.count(); i++) {
            Input input = inputs.get(i);
            checkNew(input, i);
            if (raw > 0) {
                tensors.add(raw(input, i));
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
        return ByteElements.view(
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
        TypedContents contents = new TypedContents(wire, message, input.name, type(input), model);
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
        while (wire.hasMore()) {
            int tag = wire.readTag();
            switch (tag) {
                case 1 << 3 | WireReader.BYTES -> name = wire.readText(bench.names);
                case 2 << 3 | WireReader.BYTES -> {
                    parameter.readEntry();
                    Object value = parameter.value();
                    if (parameter.key().equals("classification")) {
                        if (!(value instanceof Long n)) {
                            throw ServingException.invalidArgument(
                                    "invalid value type for 'classification' parameter, expected int64_param.");
                        }
                        classes = RestInferReader.classes(n);
                    } else if (parameter.key().equals("shared_memory_region")) {
                        throw sharedMemory();
                    }
                }
                default -> wire.skipField(tag);
            }
        }
        return new RequestedOutput(name, classes);
    }

    private static ServingException sharedMemory() {
        return ServingException.of(
                io.nereid.base.Code.UNIMPLEMENTED,
                "shared memory is not supported over gRPC",
                "send tensors as raw contents");
    }
}
