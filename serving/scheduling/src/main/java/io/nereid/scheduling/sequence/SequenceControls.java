// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.SequenceControl;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The control inputs of a stateful model: START, END, READY and CORRID. The two values of each flag are created once
 * and shared by all requests; the tensor of a correlation id is created once for each sequence. Thread-safe: immutable
 * until closed.
 */
public final class SequenceControls implements AutoCloseable {
    private static final long MAX_UINT32 = 0xFFFF_FFFFL;

    private final String model;
    private final Shape shape;
    private final List<Made> controls = new ArrayList<>();
    private @Nullable SequenceControl corrid;

    /**
     * @throws ServingException INVALID_ARGUMENT for a control with a data type that Triton does not allow
     */
    public SequenceControls(ModelConfig config, List<SequenceControl> configured) {
        this.model = config.name();
        this.shape = config.batched() ? Shape.of(1, 1) : Shape.of(1);
        try {
            for (SequenceControl control : configured) {
                if (control.kind() == SequenceControl.Kind.CORRID) {
                    corrid = control;
                    Tensor none = idTensor(control, control.dataType() == DataType.BYTES ? "" : 0L);
                    controls.add(new Made(control.kind(), none, none));
                } else {
                    Tensor no = value(control, control.falseValue());
                    controls.add(new Made(control.kind(), no, value(control, control.trueValue())));
                }
            }
        } catch (RuntimeException e) {
            close();
            throw e;
        }
    }

    /** Returns the data type of the CORRID control; null if the model does not have one. */
    public @Nullable DataType idType() {
        return corrid == null ? null : corrid.dataType();
    }

    /**
     * Checks that a correlation id can be represented by the CORRID control.
     *
     * @throws ServingException INVALID_ARGUMENT if its type is different or its value is out of range
     */
    public void checkId(Object id) {
        SequenceControl control = corrid;
        if (control == null) {
            return;
        }
        DataType given = id instanceof Long ? DataType.UINT64 : DataType.BYTES;
        DataType type = control.dataType();
        if ((given == DataType.BYTES) != (type == DataType.BYTES)) {
            throw ServingException.invalidArgument("sequence batching control '" + control.name() + "' data-type is '"
                    + given + "', but model '" + model + "' expects '" + type + "'");
        }
        if (!(id instanceof Long n)) {
            return;
        }
        boolean fits = switch (type) {
            case INT32 -> n >= 0 && n <= Integer.MAX_VALUE;
            case UINT32 -> n >= 0 && n <= MAX_UINT32;
            case INT64 -> n >= 0;
            default -> true;
        };
        if (!fits) {
            throw ServingException.invalidArgument("correlation ID " + Long.toUnsignedString(n) + " does not fit into"
                    + " sequence batching control '" + control.name() + "' of model '" + model + "', which is "
                    + type);
        }
    }

    /** Creates the tensor of an id, owned by the caller; null if the model has no CORRID control. */
    @Nullable Tensor ofId(Object id) {
        return corrid == null ? null : idTensor(corrid, id);
    }

    /** Adds the controls of a request to its inputs; the caller owns a reference to each. */
    void append(List<Tensor> inputs, boolean start, boolean end, @Nullable Tensor id) {
        for (Made made : controls) {
            boolean yes = switch (made.kind) {
                case START -> start;
                case END -> end;
                case READY -> true;
                case CORRID -> false;
            };
            Tensor t = made.kind == SequenceControl.Kind.CORRID && id != null ? id : yes ? made.yes : made.no;
            inputs.add(t.retain());
        }
    }

    /** Adds the controls of a row without a request to its inputs; the caller owns a reference to each. */
    void appendFiller(List<Tensor> inputs) {
        for (Made made : controls) {
            inputs.add(made.no.retain());
        }
    }

    /** Returns the number of controls. */
    int count() {
        return controls.size();
    }

    @Override
    public void close() {
        for (Made made : controls) {
            made.no.close();
            if (made.yes != made.no) {
                made.yes.close();
            }
        }
        controls.clear();
    }

    private Tensor value(SequenceControl control, double value) {
        DataType type = control.dataType();
        byte[] bytes = switch (type) {
            case INT32 -> littleEndian(4).putInt((int) value).array();
            case FP32 -> littleEndian(4).putFloat((float) value).array();
            case BOOL -> new byte[] {(byte) (value != 0 ? 1 : 0)};
            default -> throw unexpected(control, "TYPE_INT32, TYPE_FP32 and TYPE_BOOL");
        };
        return over(control, bytes);
    }

    private Tensor idTensor(SequenceControl control, Object id) {
        long n = id instanceof Long l ? l : 0;
        byte[] bytes = switch (control.dataType()) {
            case UINT64, INT64 -> littleEndian(8).putLong(n).array();
            case UINT32, INT32 -> littleEndian(4).putInt((int) n).array();
            case BYTES -> {
                byte[] text = id.toString().getBytes(StandardCharsets.UTF_8);
                yield littleEndian(4 + text.length)
                        .putInt(text.length)
                        .put(text)
                        .array();
            }
            default -> throw unexpected(control, "TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING");
        };
        return over(control, bytes);
    }

    private Tensor over(SequenceControl control, byte[] bytes) {
        return Tensor.over(
                control.name(),
                control.dataType(),
                shape,
                MemoryRegion.copyOf(bytes, 0, bytes.length),
                0,
                bytes.length);
    }

    private ServingException unexpected(SequenceControl control, String allowed) {
        return ServingException.invalidArgument("unexpected data type for control " + control.kind() + " for " + model
                + ": " + control.dataType() + ". Allowed data types are " + allowed);
    }

    private static ByteBuffer littleEndian(int bytes) {
        return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    private record Made(SequenceControl.Kind kind, Tensor no, Tensor yes) {}
}
