// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

import io.nereid.base.ServingException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;

/**
 * The allow-list of the types that a pickle may name, and the data that stands for a call of each. No code of a named
 * type runs: calls of the few functions that build numpy values are imitated, all others become {@link PyObject}s that
 * record type and arguments. Stateless.
 */
final class PickleTypes {
    private static final Set<String> BUILTINS = Set.of(
            "object",
            "int",
            "float",
            "bool",
            "str",
            "bytes",
            "bytearray",
            "list",
            "tuple",
            "dict",
            "set",
            "frozenset",
            "slice",
            "range",
            "complex");

    private static final Set<String> OTHERS = Set.of(
            "copy_reg._reconstructor",
            "copyreg._reconstructor",
            "collections.OrderedDict",
            "collections.defaultdict",
            "_codecs.encode",
            "functools.partial",
            "joblib.numpy_pickle.NumpyArrayWrapper");

    private static final Set<String> FOREIGN = Set.of(
            "sklearn",
            "numpy",
            "scipy.sparse",
            "scipy.interpolate",
            "scipy._lib.array_api_compat",
            "pandas",
            "xgboost",
            "lightgbm",
            "catboost");

    private PickleTypes() {}

    /**
     * The name of a type or function that is on the list.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a name that is not on the list
     */
    static PyGlobal allowed(String module, String name) {
        PyGlobal global = new PyGlobal(module, name);
        boolean known = module.equals("builtins") || module.equals("__builtin__")
                ? BUILTINS.contains(name)
                : OTHERS.contains(global.path()) || FOREIGN.stream().anyMatch(global::isOf) || isCompiledLoss(global);
        if (!known) {
            String path = global.path();
            throw ServingException.invalidArgument(
                    "it uses " + (path.length() > 120 ? path.substring(0, 120) + "…" : path)
                            + ", which is not a type of scikit-learn, XGBoost, LightGBM or CatBoost; nothing of it was run",
                    "if that is a class of your own or of another library, serve the model with the backend 'python', which"
                            + " runs its code: 'nereid convert FILE' writes the model.py that loads it; or export it to ONNX"
                            + " with skl2onnx; if you do not know it, do not trust the file");
        }
        return global;
    }

    /**
     * Whether it is a compiled loss function of scikit-learn, or the function that restores it, which pickles of some
     * versions, such as 1.5, name without their package: {@code _loss.CyHalfBinomialLoss}.
     */
    private static boolean isCompiledLoss(PyGlobal global) {
        return global.module().equals("_loss")
                && (global.name().startsWith("Cy") || global.name().startsWith("__pyx_unpickle_Cy"));
    }

    /** The value that stands for a call (opcode REDUCE, NEWOBJ, INST or OBJ) of a listed type or function. */
    static Object make(Object callee, Object arguments, MemoryLimit memory) {
        if (!(callee instanceof PyGlobal global)) {
            throw UnsupportedModel.corrupt("it calls " + PythonValues.kind(callee) + ", which is not a type");
        }
        if (!(arguments instanceof PyTuple args)) {
            throw UnsupportedModel.corrupt("it calls " + global.path() + " without a tuple of arguments");
        }
        memory.charge(160);
        return switch (global.path()) {
            case "numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct" -> new NdArray();
            case "numpy.dtype" -> dtype(args.get(0));
            case "numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar" -> scalar(args);
            case "numpy.core.numeric._frombuffer", "numpy._core.numeric._frombuffer" -> fromBuffer(args);
            case "_codecs.encode" -> encoded(args);
            case "builtins.bytes", "__builtin__.bytes", "builtins.bytearray", "__builtin__.bytearray" ->
                args.size() == 0 ? new byte[0] : bytes(args.get(0));
            case "builtins.set", "__builtin__.set", "builtins.frozenset", "__builtin__.frozenset", "builtins.list" ->
                args.size() == 0 ? new PyList() : args.get(0);
            case "builtins.dict", "collections.OrderedDict" -> args.size() == 0 ? new PyDict() : args.get(0);
            case "copy_reg._reconstructor", "copyreg._reconstructor" -> reconstructed(args);
            default -> new PyObject(global, args.items());
        };
    }

    private static Object reconstructed(PyTuple args) {
        if (!(args.get(0) instanceof PyGlobal type)) {
            throw UnsupportedModel.corrupt("it creates an object without a type");
        }
        return new PyObject(type, List.of());
    }

    private static DType dtype(Object of) {
        if (of instanceof String code) {
            return DType.parse(code);
        }
        if (of instanceof PyGlobal type) {
            return DType.parse(type.name());
        }
        throw UnsupportedModel.corrupt("a numpy dtype is given as " + PythonValues.kind(of));
    }

    private static Object scalar(PyTuple args) {
        if (!(args.get(0) instanceof DType type)) {
            throw UnsupportedModel.corrupt("a numpy scalar has no dtype");
        }
        Object data = args.get(1);
        return data instanceof byte[] bytes && type.kind() != 'O'
                ? new NdArray(new int[0], type, false, bytes).values()[0]
                : data;
    }

    private static NdArray fromBuffer(PyTuple args) {
        if (!(args.get(1) instanceof DType type)) {
            throw UnsupportedModel.corrupt("an array has no dtype");
        }
        return new NdArray(NdArray.shape(args.get(2)), type, "F".equals(args.get(3)), bytes(args.get(0)));
    }

    private static byte[] encoded(PyTuple args) {
        if (!(args.get(0) instanceof String text) || !"latin1".equals(args.get(1))) {
            throw UnsupportedModel.corrupt("_codecs.encode is called with other arguments than a string and 'latin1'");
        }
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }

    private static byte[] bytes(Object value) {
        if (!(value instanceof byte[] bytes)) {
            throw UnsupportedModel.corrupt("there is " + PythonValues.kind(value) + " (expected: bytes)");
        }
        return bytes;
    }
}
