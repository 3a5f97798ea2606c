// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import static org.tensorflow.internal.c_api.global.tensorflow.TF_AllocateTensor;
import static org.tensorflow.internal.c_api.global.tensorflow.TF_DeleteTensor;
import static org.tensorflow.internal.c_api.global.tensorflow.TF_Dim;
import static org.tensorflow.internal.c_api.global.tensorflow.TF_NewTensor;
import static org.tensorflow.internal.c_api.global.tensorflow.TF_NumDims;
import static org.tensorflow.internal.c_api.global.tensorflow.TF_SessionRun;
import static org.tensorflow.internal.c_api.global.tensorflow.TF_TensorByteSize;
import static org.tensorflow.internal.c_api.global.tensorflow.TF_TensorData;
import static org.tensorflow.internal.c_api.global.tensorflow.TF_TensorType;

import io.nereid.backend.ModelInstance;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;
import org.jspecify.annotations.Nullable;
import org.tensorflow.internal.c_api.TF_Buffer;
import org.tensorflow.internal.c_api.TF_Operation;
import org.tensorflow.internal.c_api.TF_Output;
import org.tensorflow.internal.c_api.TF_Tensor;

/**
 * Runs of one signature of a shared session, one at a time. Confined to one thread at a time. A run under way cannot be
 * stopped: the engine's C interface has no call for it.
 */
final class TfInvocation implements ModelInstance {
    /** Below this, copying costs less than keeping account of what the engine holds. */
    private static final int LENT_FROM = 64 * 1024;

    /** Below this, copying a result costs less than viewing it where it lies. */
    private static final int VIEWED_FROM = 4 * 1024;

    private final TfModel model;
    private final SignaturePorts signature;
    private final Status status = new Status();
    private final TF_Output feeds;
    private final LongPointer fed;
    private final TF_Tensor[] tensors;

    private List<String> wanted = List.of();
    private Port[] fetched = {};
    private @Nullable TF_Output fetches;
    private @Nullable LongPointer results;
    private boolean closed;

    TfInvocation(TfModel model, SignaturePorts signature) {
        this.model = model;
        this.signature = signature;
        int inputs = signature.inputs().size();
        tensors = new TF_Tensor[inputs];
        feeds = new TF_Output(Math.max(1, inputs));
        fed = new LongPointer(Math.max(1, inputs));
        for (int i = 0; i < inputs; i++) {
            set(feeds, i, signature.inputs().get(i));
        }
    }

    private static void set(TF_Output list, int i, Port port) {
        TF_Output one = list.getPointer(i);
        one.oper(new TF_Operation(new Address(port.operation()))).index(port.index());
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        if (closed) {
            throw new IllegalStateException("the invocation is closed");
        }
        if (!outputs.equals(wanted)) {
            want(List.copyOf(outputs));
        }
        TF_Output asked = fetches;
        LongPointer given = results;
        if (asked == null || given == null) {
            throw new IllegalStateException("nothing is wanted");
        }
        List<Port> ports = signature.inputs();
        boolean[] own = new boolean[ports.size()];
        try {
            for (Tensor input : inputs) {
                int at = index(input.name());
                if (own[at]) {
                    throw ServingException.invalidArgument("input '" + input.name() + "' is given twice");
                }
                tensors[at] = feed(ports.get(at), input);
                own[at] = true;
            }
            for (int i = 0; i < own.length; i++) {
                TF_Tensor tensor = own[i] ? tensors[i] : model.defaults().of(ports.get(i));
                if (tensor == null) {
                    throw ServingException.invalidArgument(
                            "input '" + ports.get(i).name() + "' of model '"
                                    + model.config().name() + "' is missing");
                }
                fed.put(i, tensor.address());
            }
            for (int i = 0; i < fetched.length; i++) {
                given.put(i, 0L);
            }
            TF_SessionRun(
                    model.graph().session(),
                    (TF_Buffer) null,
                    feeds,
                    new PointerPointer<>(fed),
                    own.length,
                    asked,
                    new PointerPointer<>(given),
                    fetched.length,
                    (PointerPointer<?>) null,
                    0,
                    (TF_Buffer) null,
                    status.handle());
        } finally {
            for (int i = 0; i < own.length; i++) {
                if (own[i]) {
                    TF_DeleteTensor(tensors[i]);
                }
            }
        }
        if (status.failed()) {
            throw TfErrors.running(model.config().name(), status);
        }
        return collect(given);
    }

    /** Prepares for other outputs than those of the last run. */
    private void want(List<String> outputs) {
        Port[] ports = new Port[outputs.size()];
        for (int i = 0; i < ports.length; i++) {
            Port port = Port.named(signature.outputs(), outputs.get(i));
            if (port == null) {
                throw ServingException.invalidArgument("unexpected output '" + outputs.get(i) + "' for model '"
                        + model.config().name() + "' (expected: "
                        + String.join(", ", Port.names(signature.outputs())) + ")");
            }
            ports[i] = port;
        }
        forget();
        TF_Output list = new TF_Output(Math.max(1, ports.length));
        for (int i = 0; i < ports.length; i++) {
            set(list, i, ports[i]);
        }
        fetches = list;
        results = new LongPointer(Math.max(1, ports.length));
        fetched = ports;
        wanted = outputs;
    }

    private void forget() {
        wanted = List.of();
        fetched = new Port[0];
        if (fetches != null) {
            fetches.close();
            fetches = null;
        }
        if (results != null) {
            results.close();
            results = null;
        }
    }

    private int index(String name) {
        List<Port> ports = signature.inputs();
        for (int i = 0; i < ports.size(); i++) {
            if (ports.get(i).name().equals(name)) {
                return i;
            }
        }
        throw ServingException.invalidArgument("unexpected input '" + name + "' for model '"
                + model.config().name() + "' (expected: " + String.join(", ", Port.names(ports)) + ")");
    }

    private static TF_Tensor feed(Port port, Tensor input) {
        Shape shape = TfModel.fed(port, input.shape());
        port.check(input.dataType(), shape);
        int type = ElementTypes.number(port.dataType());
        long[] dims = shape.dims();
        // The binding takes no empty array.
        long[] given = dims.length == 0 ? new long[1] : dims;
        Loans loans = Loans.ofProcess();
        if (port.dataType() == DataType.BYTES) {
            MemoryRegion elements = Texts.elements(input);
            long size = elements.size();
            // A region of nothing has an address that the engine takes for none.
            if (size == 0) {
                return TF_AllocateTensor(type, given, dims.length, 0);
            }
            return TF_NewTensor(
                    type,
                    given,
                    dims.length,
                    new Address(elements.address()),
                    size,
                    loans,
                    new Address(loans.lend(() -> Texts.free(elements))));
        }
        long size = shape.byteSize(port.dataType());
        if (size != input.byteLength()) {
            throw ServingException.invalidArgument("input '" + port.name() + "' of shape " + shape + " and type "
                    + port.dataType() + " has " + input.byteLength() + " bytes (expected: " + size + ")");
        }
        if (size >= LENT_FROM && input.address() % MemoryRegion.ALIGNMENT == 0) {
            return TF_NewTensor(
                    type,
                    given,
                    dims.length,
                    new Address(input.address()),
                    size,
                    loans,
                    new Address(loans.lend(input.region())));
        }
        TF_Tensor tensor = TF_AllocateTensor(type, given, dims.length, size);
        if (size > 0) {
            Pointer.memcpy(TF_TensorData(tensor), new Address(input.address()), size);
        }
        return tensor;
    }

    /** Takes the engine's results over. */
    private List<Tensor> collect(LongPointer given) {
        List<Tensor> collected = new ArrayList<>(fetched.length);
        int next = 0;
        try {
            while (next < fetched.length) {
                TF_Tensor tensor = new TF_Tensor(new Address(given.get(next)));
                // From here on the tensor is not ours to delete.
                collected.add(taken(fetched[next++], tensor));
            }
            return collected;
        } finally {
            if (collected.size() < fetched.length) {
                Tensor.closeAll(collected);
                for (int i = next; i < fetched.length; i++) {
                    TF_DeleteTensor(new TF_Tensor(new Address(given.get(i))));
                }
            }
        }
    }

    private static Tensor taken(Port port, TF_Tensor tensor) {
        boolean held = false;
        try {
            long[] dims = new long[TF_NumDims(tensor)];
            for (int i = 0; i < dims.length; i++) {
                dims[i] = TF_Dim(tensor, i);
            }
            Shape shape = Shape.of(dims);
            if (TF_TensorType(tensor) != ElementTypes.number(port.dataType())) {
                throw new IllegalStateException("output '" + port.name() + "' is of "
                        + ElementTypes.name(TF_TensorType(tensor)) + " instead of " + port.dataType());
            }
            Pointer data = TF_TensorData(tensor);
            if (port.dataType() == DataType.BYTES) {
                return Texts.decode(port.name(), shape, data == null ? 0 : data.address());
            }
            long size = TF_TensorByteSize(tensor);
            if (size > Integer.MAX_VALUE - 64) {
                throw ServingException.of(
                        ErrorCode.RESOURCE_EXHAUSTED,
                        "output '" + port.name() + "' takes " + size + " bytes (expected: < 2 GiB)");
            }
            MemoryRegion region;
            if (size == 0 || data == null) {
                region = MemoryRegion.empty();
            } else if (size < VIEWED_FROM) {
                region = MemoryRegion.allocate((int) size);
                Pointer.memcpy(new Address(region.address()), data, size);
            } else {
                region = MemoryRegion.ofForeign(Texts.view(data.address(), size), () -> TF_DeleteTensor(tensor));
                held = true;
            }
            return Tensor.over(port.name(), port.dataType(), shape, region, 0, (int) size);
        } finally {
            if (!held) {
                TF_DeleteTensor(tensor);
            }
        }
    }

    @Override
    public void cancel() {
        // See the class.
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            forget();
            feeds.close();
            fed.close();
            status.close();
        }
    }
}
