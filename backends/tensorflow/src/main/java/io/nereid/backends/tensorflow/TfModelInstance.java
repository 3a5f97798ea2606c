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
 * One instance of a TensorFlow model: runs one signature of the shared session, one run at a time. Confined to one
 * thread at a time. {@link #cancel} does nothing: TensorFlow's C API cannot stop a session run.
 *
 * <p>Memory. A large, aligned input is borrowed by TensorFlow ({@link BorrowedMemory}), a small one is copied. Each
 * input {@code TF_Tensor} is deleted when the run ends; TensorFlow frees its buffer when it has no other user. A
 * result's {@code TF_Tensor} is owned by the returned tensor, whose region views TensorFlow's memory and deletes the
 * {@code TF_Tensor} with its last reference; small results are copied and deleted at once.
 *
 * <p>The native argument arrays are allocated once and reused by every run, which keeps allocation off the request
 * path.
 */
final class TfModelInstance implements ModelInstance {
    /** Inputs below this size are copied: that costs less than a deallocator callback. */
    private static final int LENT_FROM = 64 * 1024;

    /** Results below this size are copied: that costs less than a view that owns a {@code TF_Tensor}. */
    private static final int VIEWED_FROM = 4 * 1024;

    private final TfModel model;
    private final SignatureBinding signature;
    private final TfStatus status = new TfStatus();
    private final TF_Output feeds;
    private final LongPointer fed;
    private final TF_Tensor[] tensors;

    private List<String> requested = List.of();
    private TensorBinding[] fetched = {};
    private @Nullable TF_Output fetches;
    private @Nullable LongPointer results;
    private boolean closed;

    TfModelInstance(TfModel model, SignatureBinding signature) {
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

    private static void set(TF_Output list, int i, TensorBinding port) {
        TF_Output one = list.getPointer(i);
        one.oper(new TF_Operation(new NativePointer(port.operation()))).index(port.index());
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        if (closed) {
            throw new IllegalStateException("the instance is closed");
        }
        if (!outputs.equals(requested)) {
            prepareOutputs(List.copyOf(outputs));
        }
        TF_Output targets = fetches;
        LongPointer given = results;
        if (targets == null || given == null) {
            throw new IllegalStateException("no outputs are requested");
        }
        List<TensorBinding> ports = signature.inputs();
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
                    targets,
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

    /** Prepares the native arrays for another list of outputs than the last run's. */
    private void prepareOutputs(List<String> outputs) {
        TensorBinding[] ports = new TensorBinding[outputs.size()];
        for (int i = 0; i < ports.length; i++) {
            TensorBinding port = TensorBinding.named(signature.outputs(), outputs.get(i));
            if (port == null) {
                throw ServingException.invalidArgument("unexpected output '" + outputs.get(i) + "' for model '"
                        + model.config().name() + "' (expected: "
                        + String.join(", ", TensorBinding.names(signature.outputs())) + ")");
            }
            ports[i] = port;
        }
        releaseOutputs();
        TF_Output list = new TF_Output(Math.max(1, ports.length));
        for (int i = 0; i < ports.length; i++) {
            set(list, i, ports[i]);
        }
        fetches = list;
        results = new LongPointer(Math.max(1, ports.length));
        fetched = ports;
        requested = outputs;
    }

    private void releaseOutputs() {
        requested = List.of();
        fetched = new TensorBinding[0];
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
        List<TensorBinding> ports = signature.inputs();
        for (int i = 0; i < ports.size(); i++) {
            if (ports.get(i).name().equals(name)) {
                return i;
            }
        }
        throw ServingException.invalidArgument("unexpected input '" + name + "' for model '"
                + model.config().name() + "' (expected: " + String.join(", ", TensorBinding.names(ports)) + ")");
    }

    private static TF_Tensor feed(TensorBinding port, Tensor input) {
        Shape shape = TfModel.fed(port, input.shape());
        port.check(input.dataType(), shape);
        int type = TfElementTypes.number(port.dataType());
        long[] dims = shape.dims();
        // JavaCPP rejects an empty array; TensorFlow reads only as many dimensions as it is given.
        long[] given = dims.length == 0 ? new long[1] : dims;
        BorrowedMemory loans = BorrowedMemory.ofProcess();
        if (port.dataType() == DataType.BYTES) {
            MemoryRegion elements = StringTensors.elements(input);
            long size = elements.size();
            // The empty region has no address, and TF_NewTensor needs one.
            if (size == 0) {
                return TF_AllocateTensor(type, given, dims.length, 0);
            }
            return TF_NewTensor(
                    type,
                    given,
                    dims.length,
                    new NativePointer(elements.address()),
                    size,
                    loans,
                    new NativePointer(loans.lend(() -> StringTensors.free(elements))));
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
                    new NativePointer(input.address()),
                    size,
                    loans,
                    new NativePointer(loans.lend(input.region())));
        }
        TF_Tensor tensor = TF_AllocateTensor(type, given, dims.length, size);
        if (size > 0) {
            Pointer.memcpy(TF_TensorData(tensor), new NativePointer(input.address()), size);
        }
        return tensor;
    }

    /** Converts TensorFlow's results to tensors. On a failure, all results are freed. */
    private List<Tensor> collect(LongPointer given) {
        List<Tensor> collected = new ArrayList<>(fetched.length);
        int next = 0;
        try {
            while (next < fetched.length) {
                TF_Tensor tensor = new TF_Tensor(new NativePointer(given.get(next)));
                // toTensor() owns the TF_Tensor from here on, even if it fails: so count it as handled first.
                collected.add(toTensor(fetched[next++], tensor));
            }
            return collected;
        } finally {
            if (collected.size() < fetched.length) {
                Tensor.closeAll(collected);
                for (int i = next; i < fetched.length; i++) {
                    TF_DeleteTensor(new TF_Tensor(new NativePointer(given.get(i))));
                }
            }
        }
    }

    /**
     * Makes a tensor of a result and takes ownership of the {@code TF_Tensor}: it is deleted here or with the region.
     */
    private static Tensor toTensor(TensorBinding port, TF_Tensor tensor) {
        boolean owned = false;
        try {
            long[] dims = new long[TF_NumDims(tensor)];
            for (int i = 0; i < dims.length; i++) {
                dims[i] = TF_Dim(tensor, i);
            }
            Shape shape = Shape.of(dims);
            if (TF_TensorType(tensor) != TfElementTypes.number(port.dataType())) {
                throw new IllegalStateException("output '" + port.name() + "' is of "
                        + TfElementTypes.name(TF_TensorType(tensor)) + " instead of " + port.dataType());
            }
            Pointer data = TF_TensorData(tensor);
            if (port.dataType() == DataType.BYTES) {
                return StringTensors.decode(port.name(), shape, data == null ? 0 : data.address());
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
                Pointer.memcpy(new NativePointer(region.address()), data, size);
            } else {
                region = MemoryRegion.wrap(StringTensors.view(data.address(), size), () -> TF_DeleteTensor(tensor));
                owned = true;
            }
            return Tensor.over(port.name(), port.dataType(), shape, region, 0, (int) size);
        } finally {
            if (!owned) {
                TF_DeleteTensor(tensor);
            }
        }
    }

    @Override
    public void cancel() {
        // Not supported, see the class comment.
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            releaseOutputs();
            feeds.close();
            fed.close();
            status.close();
        }
    }
}
