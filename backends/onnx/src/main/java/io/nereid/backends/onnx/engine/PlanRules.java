// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx.engine;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import java.util.List;
import java.util.Set;

/**
 * What the configuration of a plan must have and cannot have. A plan says its inputs and outputs to TensorRT alone, so that the
 * configuration has to list them, and it is compiled, so that options of compilation are too late. Stateless.
 */
public final class PlanRules {
    /** The types of tensors that TensorRT 10 and ONNX Runtime's execution provider for it have both. */
    private static final Set<DataType> TYPES = Set.of(
            DataType.BOOL,
            DataType.UINT8,
            DataType.INT8,
            DataType.INT32,
            DataType.INT64,
            DataType.FP16,
            DataType.BF16,
            DataType.FP32);

    private PlanRules() {}

    /**
     * Checks a configuration, without the accelerators for GPUs.
     *
     * @throws ServingException INVALID_ARGUMENT for missing inputs or outputs and for a type that TensorRT does not have,
     *     FAILED_PRECONDITION for instances on processors, UNIMPLEMENTED for settings that nothing would follow
     */
    public static void check(ModelConfig config) {
        String who = "model '" + config.name() + "' ";
        if (config.instanceGroups().isEmpty()
                || config.instanceGroups().stream().anyMatch(group -> group.kind() != InstanceGroup.Kind.GPU)) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    who + "is a TensorRT plan, which runs on GPUs only, and has instances on processors",
                    "serve it on a machine with a GPU, or serve the ONNX model that the plan was compiled from");
        }
        listed(config, "input", config.modelInputs());
        listed(config, "output", config.modelOutputs());
        if (config.optimization().graphLevel() != 0) {
            throw refused(who, "optimization.graph.level", "a plan is a graph that TensorRT has optimized already");
        }
        if (!config.optimization().cpuAccelerators().isEmpty()) {
            throw refused(who, "cpu_execution_accelerator", "a plan runs on GPUs only");
        }
        if (!config.operatorLibraries().isEmpty()) {
            throw ServingException.of(
                    ErrorCode.UNIMPLEMENTED,
                    who
                            + "has op_library_filename, which names operators of ONNX Runtime; a plan has layers of TensorRT",
                    "name the libraries of layers in --backend-config tensorrt,plugins=LIBRARY;LIBRARY, or in"
                            + " trt_extra_plugin_lib_paths of the model's accelerator 'tensorrt'");
        }
    }

    /**
     * Checks the options for GPUs.
     *
     * @param others the names of what the configuration has for other execution providers
     * @param tensorRt ONNX Runtime's keys of the options for TensorRT
     * @param kept the key of the only option that a plan can have
     * @throws ServingException UNIMPLEMENTED for each of them but this one
     */
    public static void checkOptions(ModelConfig config, List<String> others, Set<String> tensorRt, String kept) {
        String who = "model '" + config.name() + "' ";
        for (String key : others) {
            throw refused(who, key, "a plan runs on TensorRT alone, without ONNX Runtime's kernels for CUDA");
        }
        for (String key : tensorRt) {
            if (!key.equals(kept)) {
                throw refused(who, key, "the option decides how TensorRT compiles a model, and a plan is compiled");
            }
        }
    }

    private static void listed(ModelConfig config, String side, List<TensorSpec> specs) {
        if (specs.isEmpty()) {
            throw ServingException.invalidArgument(
                    "model '" + config.name() + "' is a TensorRT plan, and its configuration has no " + side
                            + "; a plan says its inputs and outputs to TensorRT alone",
                    "write all inputs and outputs into config.pbtxt, such as " + side
                            + " { name: \"NAME\" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }; 'polygraphy inspect model"
                            + " FILE --model-type engine' lists them");
        }
        for (TensorSpec spec : specs) {
            if (!TYPES.contains(spec.dataType())) {
                throw ServingException.invalidArgument(
                        side + " '" + spec.name() + "' of model '" + config.name() + "' has data_type "
                                + (spec.dataType() == DataType.BYTES ? "TYPE_STRING" : "TYPE_" + spec.dataType())
                                + ", which TensorRT does not have (expected: BOOL, UINT8, INT8, INT32, INT64, FP16, BF16"
                                + " or FP32)",
                        "write the type that the plan has");
            }
        }
    }

    private static ServingException refused(String who, String field, String why) {
        return ServingException.of(
                ErrorCode.UNIMPLEMENTED, who + "has '" + field + "', which has no effect: " + why, "remove it");
    }
}
