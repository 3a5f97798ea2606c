// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import ai.onnxruntime.OnnxJavaType;
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtLoggingLevel;
import ai.onnxruntime.TensorInfo;
import ai.onnxruntime.TensorInfo.OnnxTensorType;
import io.nereid.tensor.DataType;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * ONNX Runtime as started in this process: its environment, and {@code OnnxTensor}s over the server's memory. Immutable
 * after start, thread-safe.
 *
 * <p>Two features of ONNX Runtime's C API are not public in its Java API: a view of a result's memory, and unsigned
 * inputs wider than one byte. Both are called by reflection and probed once at the start. If the probe fails, results
 * are copied, and models with such inputs are rejected at load time.
 */
final class OrtRuntime {
    private static final Logger LOG = System.getLogger(OrtRuntime.class.getName());

    private final OrtEnvironment environment;
    private final @Nullable MethodHandle view;
    private final @Nullable UnsignedTensors unsigned;

    private OrtRuntime(OrtEnvironment environment, @Nullable MethodHandle view, @Nullable UnsignedTensors unsigned) {
        this.environment = environment;
        this.view = view;
        this.unsigned = unsigned;
    }

    /**
     * Loads the native libraries and creates the environment; takes up to a few hundred milliseconds once per process.
     *
     * @throws OrtException when ONNX Runtime does not start
     * @throws LinkageError when the native libraries cannot be loaded on this machine
     */
    static OrtRuntime start(OrtLibrary library) throws OrtException {
        if (System.getProperty(OrtLibrary.PATH_PROPERTY) == null) {
            Path directory = library.directory();
            if (directory != null) {
                System.setProperty(OrtLibrary.PATH_PROPERTY, directory.toString());
            }
        }
        // ONNX Runtime throws the errors that it also logs to stderr; FATAL keeps them from being reported twice.
        OrtEnvironment environment = OrtEnvironment.getEnvironment(OrtLoggingLevel.ORT_LOGGING_LEVEL_FATAL, "nereid");
        environment.setTelemetry(false);
        return new OrtRuntime(environment, probeView(environment), UnsignedTensors.probe(environment));
    }

    OrtEnvironment environment() {
        return environment;
    }

    /** Whether {@link #view} works, so that results need no copy. */
    boolean canView() {
        return view != null;
    }

    /** Whether {@link #wrap} supports this type. */
    boolean canWrap(DataType type) {
        return unsigned != null || !(type == DataType.UINT16 || type == DataType.UINT32 || type == DataType.UINT64);
    }

    /**
     * Makes an {@code OnnxTensor} over direct memory, without a copy.
     *
     * @param memory must stay allocated until the tensor is closed; neither the tensor nor ONNX Runtime keeps it alive
     */
    OnnxTensor wrap(ByteBuffer memory, DataType type, long[] shape) throws OrtException {
        ByteBuffer bytes = memory.order(ByteOrder.nativeOrder());
        OnnxJavaType known = javaType(type);
        if (known != null) {
            return OnnxTensor.createTensor(environment, bytes, shape, known);
        }
        if (unsigned == null) {
            throw new OrtException("tensors of type " + type + " cannot be made");
        }
        return unsigned.make(bytes, type, shape);
    }

    /** The memory of a result, valid until the tensor is closed; null when results must be copied. */
    @Nullable ByteBuffer view(OnnxTensor tensor) {
        if (view == null) {
            return null;
        }
        try {
            return (ByteBuffer) view.invokeExact(tensor);
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    private static @Nullable OnnxJavaType javaType(DataType type) {
        return switch (type) {
            case BOOL -> OnnxJavaType.BOOL;
            case UINT8 -> OnnxJavaType.UINT8;
            case INT8 -> OnnxJavaType.INT8;
            case INT16 -> OnnxJavaType.INT16;
            case INT32 -> OnnxJavaType.INT32;
            case INT64 -> OnnxJavaType.INT64;
            case FP16 -> OnnxJavaType.FLOAT16;
            case BF16 -> OnnxJavaType.BFLOAT16;
            case FP32 -> OnnxJavaType.FLOAT;
            case FP64 -> OnnxJavaType.DOUBLE;
            case BYTES -> OnnxJavaType.STRING;
            case UINT16, UINT32, UINT64 -> null;
        };
    }

    /**
     * Finds the private {@code OnnxTensor.getBuffer()} and checks on a known tensor that it returns the tensor's own
     * memory. A later release of ONNX Runtime may change it, so nothing is assumed.
     */
    private static @Nullable MethodHandle probeView(OrtEnvironment environment) {
        ByteBuffer memory = ByteBuffer.allocateDirect(8).order(ByteOrder.nativeOrder());
        memory.putInt(0, 7);
        try (OnnxTensor tensor = OnnxTensor.createTensor(environment, memory, new long[] {2}, OnnxJavaType.INT32)) {
            Method method = OnnxTensor.class.getDeclaredMethod("getBuffer");
            method.setAccessible(true);
            MethodHandle handle = MethodHandles.lookup()
                    .unreflect(method)
                    .asType(MethodType.methodType(ByteBuffer.class, OnnxTensor.class));
            ByteBuffer seen = (ByteBuffer) handle.invokeExact(tensor);
            if (seen.isDirect()
                    && seen.capacity() == 8
                    && seen.order(ByteOrder.nativeOrder()).getInt(0) == 7) {
                return handle;
            }
            LOG.log(Level.INFO, "results of ONNX Runtime will be copied: OnnxTensor.getBuffer() has changed");
        } catch (Throwable e) {
            LOG.log(Level.INFO, "results of ONNX Runtime will be copied: " + e);
        }
        return null;
    }

    /**
     * Makes tensors of the unsigned types that the Java API leaves out: calls the private native method that makes a
     * tensor from a buffer, with the ONNX type code, and wraps the handle. Immutable.
     */
    private static final class UnsignedTensors {
        private final MethodHandle create;
        private final Constructor<TensorInfo> info;
        private final Constructor<OnnxTensor> tensor;
        private final long api;
        private final long allocator;

        private UnsignedTensors(
                MethodHandle create,
                Constructor<TensorInfo> info,
                Constructor<OnnxTensor> tensor,
                long api,
                long allocator) {
            this.create = create;
            this.info = info;
            this.tensor = tensor;
            this.api = api;
            this.allocator = allocator;
        }

        static @Nullable UnsignedTensors probe(OrtEnvironment environment) {
            try {
                Method method = OnnxTensor.class.getDeclaredMethod(
                        "createTensorFromBuffer",
                        long.class,
                        long.class,
                        Buffer.class,
                        int.class,
                        long.class,
                        long[].class,
                        int.class);
                method.setAccessible(true);
                Constructor<TensorInfo> info =
                        TensorInfo.class.getDeclaredConstructor(long[].class, OnnxJavaType.class, OnnxTensorType.class);
                info.setAccessible(true);
                Constructor<OnnxTensor> tensor = OnnxTensor.class.getDeclaredConstructor(
                        long.class, long.class, TensorInfo.class, Buffer.class, boolean.class);
                tensor.setAccessible(true);
                Field api = Class.forName("ai.onnxruntime.OnnxRuntime").getDeclaredField("ortApiHandle");
                api.setAccessible(true);
                Field allocator = OrtEnvironment.class.getDeclaredField("defaultAllocator");
                allocator.setAccessible(true);
                Object allocatorObject = allocator.get(environment);
                Field handle = allocatorObject.getClass().getDeclaredField("handle");
                handle.setAccessible(true);
                UnsignedTensors made = new UnsignedTensors(
                        MethodHandles.lookup().unreflect(method),
                        info,
                        tensor,
                        api.getLong(null),
                        handle.getLong(allocatorObject));
                ByteBuffer memory = ByteBuffer.allocateDirect(4).order(ByteOrder.nativeOrder());
                try (OnnxTensor probe = made.make(memory, DataType.UINT16, new long[] {2})) {
                    return probe.getInfo().onnxType == OnnxTensorType.ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16
                            ? made
                            : null;
                }
            } catch (ReflectiveOperationException | OrtException | RuntimeException e) {
                LOG.log(Level.INFO, "models with UINT16, UINT32 or UINT64 inputs cannot be loaded: " + e);
                return null;
            }
        }

        OnnxTensor make(ByteBuffer memory, DataType type, long[] shape) throws OrtException {
            OnnxTensorType onnxType = type == DataType.UINT16
                    ? OnnxTensorType.ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16
                    : type == DataType.UINT32
                            ? OnnxTensorType.ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32
                            : OnnxTensorType.ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64;
            OnnxJavaType javaType = OnnxJavaType.mapFromOnnxTensorType(onnxType);
            try {
                long handle = (long) create.invokeExact(
                        api,
                        allocator,
                        (Buffer) memory,
                        memory.position(),
                        (long) memory.remaining(),
                        shape,
                        onnxType.value);
                return tensor.newInstance(
                        handle, allocator, info.newInstance(shape, javaType, onnxType), memory, false);
            } catch (OrtException | RuntimeException | Error e) {
                throw e;
            } catch (Throwable e) {
                throw new IllegalStateException(e);
            }
        }
    }
}
