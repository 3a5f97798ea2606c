// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import ai.djl.engine.EngineException;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.pytorch.engine.PtNDManager;
import ai.djl.pytorch.jni.IValue;
import ai.djl.pytorch.jni.JniUtils;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.WideRuns;
import io.nereid.backends.pytorch.ArgumentBinding.Answer;
import io.nereid.backends.pytorch.ArgumentBinding.Slot;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One instance of a PyTorch model: runs the shared module, one run at a time. Confined to one thread at a time.
 * {@link #cancel} does nothing: libtorch cannot stop a run.
 *
 * <p>Memory. Inputs are tensors over the lent memory, unless the code changes tensors in place or the type must be
 * widened; then they are copies. Everything that a run creates (values, arrays, copies) belongs to its {@link Request}
 * and is freed with it. A result is a view of libtorch's memory, detached from the request, so that the returned tensor
 * owns it; it is a copy where it is small or is the memory of an input.
 */
final class PtModelInstance implements ModelInstance {
    /** Results below this size are copied: that costs less than a view that owns a native tensor. */
    private static final int VIEWED_FROM = 4 * 1024;

    private final PtModel model;

    PtModelInstance(PtModel model) {
        this.model = model;
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        return model.bound()
                ? model.threads().runHere(() -> computed(inputs, outputs))
                : model.threads().run(() -> computed(inputs, outputs));
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs, int idleThreads) {
        WideRuns<IntraOpThreads> wide = model.wide();
        return wide == null || !wide.considers(idleThreads)
                ? run(inputs, outputs)
                : wide.run(
                        inputs,
                        threads ->
                                threads == null ? run(inputs, outputs) : threads.run(() -> computed(inputs, outputs)));
    }

    private List<Tensor> computed(List<Tensor> inputs, List<String> outputs) {
        try (Request request = new Request(model.runtime().newRequest(), inputs)) {
            IValue[] arguments = arguments(request);
            IValue answer;
            if (!model.optimize()) {
                // libtorch keeps this setting per thread, so it is set for this run only.
                JniUtils.setGraphExecutorOptimize(false);
            }
            try {
                answer = model.block().forward(arguments);
            } catch (EngineException e) {
                throw PtErrors.running(model.config().name(), e);
            } finally {
                if (!model.optimize()) {
                    JniUtils.setGraphExecutorOptimize(true);
                }
            }
            request.own(answer);
            return collect(request, answer, outputs);
        }
    }

    /** The native objects and memory of one run, freed at its end. Confined to one thread. */
    private static final class Request implements AutoCloseable {
        private final PtNDManager manager;
        private final List<Tensor> inputs;
        private final List<IValue> values = new ArrayList<>();
        private final List<MemoryRegion> regions = new ArrayList<>();

        Request(PtNDManager manager, List<Tensor> inputs) {
            this.manager = manager;
            this.inputs = inputs;
        }

        IValue own(IValue value) {
            values.add(value);
            return value;
        }

        IValue[] own(IValue[] all) {
            for (IValue value : all) {
                values.add(value);
            }
            return all;
        }

        @Nullable Tensor input(@Nullable String name) {
            return name == null ? null : Tensor.find(inputs, name);
        }

        /** Whether an address lies in the memory of an input, which is lent only until the run ends. */
        boolean lent(long address) {
            for (Tensor input : inputs) {
                if (address >= input.address() && address < input.address() + input.byteLength()) {
                    return true;
                }
            }
            return false;
        }

        @Override
        public void close() {
            for (IValue value : values) {
                value.close();
            }
            manager.close();
            regions.forEach(MemoryRegion::release);
        }
    }

    private IValue[] arguments(Request request) {
        ArgumentBinding wiring = model.wiring();
        return switch (wiring.style()) {
            case ARGUMENTS -> positional(request, wiring.slots());
            case LIST -> {
                PtNDArray[] all = new PtNDArray[wiring.feeds().size()];
                for (int i = 0; i < all.length; i++) {
                    String name = wiring.feeds().get(i);
                    Tensor input = request.input(name);
                    if (input == null) {
                        throw missing(name);
                    }
                    all[i] = array(request, input);
                }
                yield new IValue[] {request.own(IValue.listFrom(all))};
            }
            case DICT -> {
                Map<String, PtNDArray> all = new LinkedHashMap<>();
                for (Tensor input : request.inputs) {
                    all.put(input.name(), array(request, input));
                }
                yield new IValue[] {request.own(IValue.stringMapFrom(all))};
            }
        };
    }

    private IValue[] positional(Request request, List<Slot> slots) {
        int count = 0;
        @Nullable Tensor[] given = new Tensor[slots.size()];
        for (int i = 0; i < given.length; i++) {
            given[i] = request.input(slots.get(i).feed());
            if (given[i] != null) {
                count = i + 1;
            } else if (slots.get(i).required()) {
                throw missing(String.valueOf(slots.get(i).feed()));
            }
        }
        // Arguments after the last given one are left out, so that libtorch uses its own defaults. An Optional argument
        // without a default cannot be left out: None is passed for it.
        for (int i = count; i < given.length; i++) {
            count = slots.get(i).defaulted() ? count : i + 1;
        }
        IValue[] arguments = new IValue[count];
        for (int i = 0; i < count; i++) {
            Tensor input = given[i];
            arguments[i] = request.own(input == null ? constant(slots.get(i)) : value(request, slots.get(i), input));
        }
        return arguments;
    }

    private ServingException missing(String name) {
        return ServingException.invalidArgument(
                "input '" + name + "' of model '" + model.config().name() + "' is missing");
    }

    private IValue constant(Slot slot) {
        Object constant = slot.constant();
        if (constant == null) {
            return model.runtime().nothing();
        } else if (constant instanceof Boolean b) {
            return IValue.from(b);
        } else if (constant instanceof Long l) {
            return IValue.from(l);
        } else if (constant instanceof Double d) {
            return IValue.from(d);
        } else if (constant instanceof String s) {
            return IValue.from(s);
        }
        throw ServingException.invalidArgument(
                "model '" + model.config().name() + "' needs a value for '" + slot.name()
                        + "' when a later input is given",
                "give it, or leave the later inputs out");
    }

    private IValue value(Request request, Slot slot, Tensor input) {
        ByteBuffer bytes = input.buffer();
        return switch (slot.value()) {
            case TENSOR -> IValue.from(array(request, input));
            case INT -> IValue.from(one(slot, input, bytes).getLong());
            case FLOAT -> IValue.from(one(slot, input, bytes).getDouble());
            case BOOL -> IValue.from(one(slot, input, bytes).get() != 0);
            case TEXT -> {
                List<String> texts = StringTensors.decode(input.name(), bytes);
                if (texts.size() != 1) {
                    throw notOne(slot, input);
                }
                yield IValue.from(texts.get(0));
            }
            case INTS -> {
                long[] all = new long[input.byteLength() / Long.BYTES];
                bytes.asLongBuffer().get(all);
                yield IValue.listFrom(all);
            }
            case FLOATS -> {
                double[] all = new double[input.byteLength() / Double.BYTES];
                bytes.asDoubleBuffer().get(all);
                yield IValue.listFrom(all);
            }
            case TEXTS -> {
                List<String> texts = StringTensors.decode(input.name(), bytes);
                if (texts.isEmpty()) {
                    throw ServingException.invalidArgument(
                            "input '" + input.name() + "' has no element (expected: one or more)");
                }
                IValue[] all = new IValue[texts.size()];
                for (int i = 0; i < all.length; i++) {
                    all[i] = request.own(IValue.from(texts.get(i)));
                }
                yield IValue.listFrom(all);
            }
        };
    }

    private static ByteBuffer one(Slot slot, Tensor input, ByteBuffer bytes) {
        if (input.byteLength() != input.dataType().size()) {
            throw notOne(slot, input);
        }
        return bytes;
    }

    private static ServingException notOne(Slot slot, Tensor input) {
        return ServingException.invalidArgument("input '" + input.name() + "' is of shape " + input.shape()
                + " (expected: one element, for the argument '" + slot.name() + "')");
    }

    /**
     * Makes a libtorch tensor of an input: over the lent memory, or over a copy if the code changes tensors in place or
     * the binding does not know the type.
     */
    private PtNDArray array(Request request, Tensor input) {
        TorchElementType type = TorchElementType.of(input.dataType());
        if (type == null) {
            throw ServingException.invalidArgument(
                    "input '" + input.name() + "' is a string tensor, which the model does not accept");
        }
        long[] dims = input.shape().dims();
        if (type.wider()) {
            long size = input.shape().elementCount() * type.crossing().getNumOfBytes();
            if (size > Integer.MAX_VALUE - 64) {
                throw ServingException.of(
                        ErrorCode.RESOURCE_EXHAUSTED,
                        "input '" + input.name() + "' takes " + size + " bytes in libtorch (expected: < 2 GiB)");
            }
            ByteBuffer wide = fresh(request, (int) size);
            type.widen(input.buffer(), wide.duplicate().order(ByteOrder.LITTLE_ENDIAN));
            PtNDArray elements = PtRuntime.wrap(request.manager, wide, dims, type.crossing());
            return model.runtime().typed(request.manager, elements, type);
        }
        ByteBuffer memory = input.buffer().slice().order(ByteOrder.nativeOrder());
        if (model.wiring().mutates()) {
            ByteBuffer copy = fresh(request, input.byteLength());
            copy.duplicate().put(memory);
            memory = copy;
        }
        return PtRuntime.wrap(request.manager, memory, dims, type.crossing());
    }

    private static ByteBuffer fresh(Request request, int size) {
        MemoryRegion region = MemoryRegion.allocate(size);
        request.regions.add(region);
        return region.buffer(0, size).slice().order(ByteOrder.nativeOrder());
    }

    private List<Tensor> collect(Request request, IValue answer, List<String> outputs) {
        IValue[] found = found(request, answer, outputs);
        List<PtNDArray> arrays = new ArrayList<>(found.length);
        for (int i = 0; i < found.length; i++) {
            if (found[i].isTensor()) {
                arrays.add(found[i].toTensor(request.manager));
            }
        }
        PtRuntime.Results results = arrays.isEmpty()
                ? new PtRuntime.Results(new long[0], new PtNDArray[0])
                : prepared(request, arrays.toArray(new PtNDArray[0]));
        List<Tensor> collected = new ArrayList<>(found.length);
        try {
            int next = 0;
            for (int i = 0; i < found.length; i++) {
                String name = outputs.get(i);
                if (found[i].isTensor()) {
                    collected.add(
                            tensor(request, name, arrays.get(next), results.types()[next], results.plain()[next]));
                    next++;
                } else {
                    collected.add(NonTensorOutputs.tensor(model.config().name(), name, request.own(found[i])));
                }
                promised(name, collected.get(i).dataType());
            }
            return collected;
        } catch (RuntimeException e) {
            Tensor.closeAll(collected);
            throw e;
        }
    }

    private PtRuntime.Results prepared(Request request, PtNDArray[] arrays) {
        try {
            return model.runtime().results(request.manager, arrays);
        } catch (EngineException e) {
            throw PtErrors.running(model.config().name(), e);
        }
    }

    private void promised(String name, DataType given) {
        DataType promised = model.promised().get(name);
        if (promised != null && promised != given) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "output '" + name + "' of model '" + model.config().name() + "' is of type " + given + ", but "
                            + promised + " in its configuration",
                    "set its type to " + (given == DataType.BYTES ? "TYPE_STRING" : "TYPE_" + given));
        }
    }

    /** The requested parts of the returned value, in the requested order. */
    private IValue[] found(Request request, IValue answer, List<String> outputs) {
        IValue @Nullable [] parts = null;
        @Nullable Map<String, IValue> named = null;
        IValue[] found = new IValue[outputs.size()];
        for (int i = 0; i < found.length; i++) {
            Answer at = model.wiring().answers().get(outputs.get(i));
            if (at == null) {
                throw ServingException.invalidArgument("unexpected output '" + outputs.get(i) + "' for model '"
                        + model.config().name() + "' (expected: "
                        + String.join(", ", model.wiring().answers().keySet()) + ")");
            }
            if (at.key() != null) {
                if (named == null) {
                    named = answer.isMap() ? answer.toIValueMap() : Map.of();
                    named.values().forEach(request::own);
                }
                IValue value = named.get(at.key());
                if (value == null) {
                    throw absent(outputs.get(i), named.isEmpty() ? "" : " (it returned " + named.keySet() + ")");
                }
                found[i] = value;
            } else if (at.index() >= 0) {
                if (parts == null) {
                    parts = request.own(
                            answer.isTuple()
                                    ? answer.toIValueTuple()
                                    : answer.isList() ? answer.toIValueArray() : new IValue[0]);
                }
                if (at.index() >= parts.length) {
                    throw absent(outputs.get(i), " (it returned " + parts.length + ")");
                }
                found[i] = parts[at.index()];
            } else {
                found[i] = answer;
            }
        }
        return found;
    }

    private ServingException absent(String output, String more) {
        return ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                "model '" + model.config().name() + "' returned no output '" + output + "'" + more,
                "do not request it, or correct the outputs of the configuration");
    }

    private Tensor tensor(Request request, String name, PtNDArray whole, long number, PtNDArray plain) {
        TorchElementType type = TorchElementType.numbered(number);
        if (type == null) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "output '" + name + "' of model '" + model.config().name()
                            + "' is of a type that clients cannot receive (libtorch's number " + number + ")",
                    "change the model to convert it, to float32 for example");
        }
        Shape shape = Shape.of(whole.getShape().getShape());
        long crossing = shape.elementCount() * type.crossing().getNumOfBytes();
        if (crossing > Integer.MAX_VALUE - 64) {
            throw ServingException.of(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    "output '" + name + "' takes " + crossing + " bytes (expected: < 2 GiB)");
        }
        int size = (int) shape.byteSize(type.dataType());
        if (size == 0) {
            return Tensor.over(name, type.dataType(), shape, MemoryRegion.empty(), 0, 0);
        }
        ByteBuffer seen = JniUtils.getByteBuffer(plain, true).order(ByteOrder.LITTLE_ENDIAN);
        if (type.wider()) {
            MemoryRegion region = MemoryRegion.allocate(size);
            type.narrow(seen, region.buffer(0, size));
            return Tensor.over(name, type.dataType(), shape, region, 0, size);
        }
        if (size >= VIEWED_FROM && !model.wiring().mutates()) {
            Tensor viewed = viewed(request, name, type.dataType(), shape, plain, seen);
            if (viewed != null) {
                return viewed;
            }
        }
        MemoryRegion region = MemoryRegion.allocate(size);
        region.buffer(0, size).put(seen);
        return Tensor.over(name, type.dataType(), shape, region, 0, size);
    }

    /**
     * Makes a tensor over libtorch's memory, which it owns from then on. Returns null when that memory belongs to an
     * input (the model returned an input or a view of it), because the input is only lent.
     */
    private static @Nullable Tensor viewed(
            Request request, String name, DataType type, Shape shape, PtNDArray array, ByteBuffer seen) {
        boolean[] kept = {false};
        MemoryRegion region = MemoryRegion.wrap(seen, () -> {
            if (kept[0]) {
                array.close();
            }
        });
        if (request.lent(region.address())) {
            region.release();
            return null;
        }
        array.detach();
        kept[0] = true;
        return Tensor.over(name, type, shape, region, 0, seen.capacity());
    }

    @Override
    public void cancel() {
        // Not supported, see the class comment.
    }

    @Override
    public void close() {
        // An instance has no resources of its own: they belong to a run or to the model.
    }
}
