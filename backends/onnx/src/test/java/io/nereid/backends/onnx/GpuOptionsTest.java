// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ExecutionAccelerator;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.OptimizationPolicy;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The GPU options of Triton's ONNX Runtime backend, and what ONNX Runtime's execution providers get of them. */
class GpuOptionsTest {
    private static GpuOptions read(Map<String, String> parameters, ExecutionAccelerator... accelerators) {
        return GpuOptions.read(ModelConfig.builder("m")
                .parameters(parameters)
                .optimization(new OptimizationPolicy(0, List.of(), List.of(accelerators)))
                .build());
    }

    private static ExecutionAccelerator tensorRt(Map<String, String> parameters) {
        return new ExecutionAccelerator("tensorrt", parameters);
    }

    private static ExecutionAccelerator cuda(Map<String, String> parameters) {
        return new ExecutionAccelerator("cuda", parameters);
    }

    @Test
    void everyOptionOfTensorRtHasOnnxRuntimesKey() {
        Map<String, String> given = new HashMap<>();
        Map<String, String> expected = new HashMap<>();
        String[][] all = {
            {"max_workspace_size_bytes", "4294967296", "trt_max_workspace_size", "4294967296"},
            {"precision_mode", "INT8", "trt_int8_enable", "1"},
            {"int8_calibration_table_name", "table.flatbuffers", "trt_int8_calibration_table_name", "table.flatbuffers"
            },
            {"int8_use_native_calibration_table", "true", "trt_int8_use_native_calibration_table", "1"},
            {"trt_max_partition_iterations", "1000", "trt_max_partition_iterations", "1000"},
            {"trt_min_subgraph_size", "5", "trt_min_subgraph_size", "5"},
            {"trt_dla_enable", "0", "trt_dla_enable", "0"},
            {"trt_dla_core", "1", "trt_dla_core", "1"},
            {"trt_engine_cache_enable", "True", "trt_engine_cache_enable", "1"},
            {"trt_engine_cache_path", "/cache/./engines", "trt_engine_cache_path", "/cache/engines"},
            {"trt_engine_cache_prefix", "ours", "trt_engine_cache_prefix", "ours"},
            {"trt_dump_subgraphs", "false", "trt_dump_subgraphs", "0"},
            {"trt_force_sequential_engine_build", "1", "trt_force_sequential_engine_build", "1"},
            {"trt_context_memory_sharing_enable", "1", "trt_context_memory_sharing_enable", "1"},
            {"trt_layer_norm_fp32_fallback", "1", "trt_layer_norm_fp32_fallback", "1"},
            {"trt_timing_cache_enable", "1", "trt_timing_cache_enable", "1"},
            {"trt_timing_cache_path", "/cache", "trt_timing_cache_path", "/cache"},
            {"trt_force_timing_cache", "1", "trt_force_timing_cache", "1"},
            {"trt_detailed_build_log", "1", "trt_detailed_build_log", "1"},
            {"trt_build_heuristics_enable", "1", "trt_build_heuristics_enable", "1"},
            {"trt_sparsity_enable", "1", "trt_sparsity_enable", "1"},
            {"trt_builder_optimization_level", "3", "trt_builder_optimization_level", "3"},
            {"trt_auxiliary_streams", "-1", "trt_auxiliary_streams", "-1"},
            {"trt_tactic_sources", "-CUDNN,+CUBLAS", "trt_tactic_sources", "-CUDNN,+CUBLAS"},
            {"trt_extra_plugin_lib_paths", "/m/a.so;/m/b.so", "trt_extra_plugin_lib_paths", "/m/a.so;/m/b.so"},
            {"trt_profile_min_shapes", "a:1x3,b:1", "trt_profile_min_shapes", "a:1x3,b:1"},
            {"trt_profile_max_shapes", "a:8x3,b:8", "trt_profile_max_shapes", "a:8x3,b:8"},
            {"trt_profile_opt_shapes", "a:4x3,b:4", "trt_profile_opt_shapes", "a:4x3,b:4"},
            {"trt_dump_ep_context_model", "1", "trt_dump_ep_context_model", "1"},
            {"trt_ep_context_file_path", "model_ctx.onnx", "trt_ep_context_file_path", "model_ctx.onnx"},
            {"trt_ep_context_embed_mode", "1", "trt_ep_context_embed_mode", "1"},
        };
        for (String[] each : all) {
            given.put(each[0], each[1]);
            expected.put(each[2], each[3]);
        }
        assertThat(read(Map.of(), tensorRt(given)).tensorRt()).isEqualTo(expected);
        // Zero is a value of theirs, so it is left out rather than passed on.
        assertThat(read(Map.of(), tensorRt(Map.of("trt_cuda_graph_enable", "0")))
                        .tensorRt())
                .isEmpty();
        assertThat(read(Map.of()).tensorRt()).isNull();
    }

    @ParameterizedTest
    @CsvSource({"FP32, ''", "FP16, trt_fp16_enable", "BF16, trt_bf16_enable", "INT8, trt_int8_enable"})
    void precisionsAreOptions(String mode, String key) {
        assertThat(read(Map.of(), tensorRt(Map.of("precision_mode", mode))).tensorRt())
                .isEqualTo(key.isEmpty() ? Map.of() : Map.of(key, "1"));
    }

    @Test
    void cudaTakesItsOptionsFromTheAcceleratorAndFromParametersOfTheModel() {
        GpuOptions options = read(
                Map.of("cudnn_conv_algo_search", "1", "gpu_mem_limit", "18446744073709551614", "owner", "us"),
                cuda(Map.of(
                        "arena_extend_strategy", "1",
                        "use_ep_level_unified_stream", "true",
                        "cudnn_conv_use_max_workspace", "0",
                        "enable_cuda_graph", "0")));
        assertThat(options.cuda())
                .isEqualTo(Map.of(
                        "cudnn_conv_algo_search", "HEURISTIC",
                        "gpu_mem_limit", "18446744073709551614",
                        "arena_extend_strategy", "kSameAsRequested",
                        "use_ep_level_unified_stream", "1",
                        "cudnn_conv_use_max_workspace", "0"));
        assertThat(options.fallback()).isEqualTo(GpuOptions.Fallback.NONE);
        assertThat(read(Map.of("nereid.gpu_fallback", "cpu")).fallback()).isEqualTo(GpuOptions.Fallback.CPU);
        refused(() -> read(Map.of("nereid.gpu_fallback", "gpu")), "is 'gpu' (expected: none, cuda or cpu)");
        refused(
                () -> read(Map.of("use_tf32", "1"), cuda(Map.of("use_tf32", "1"))),
                "is a parameter of the model and of the accelerator 'cuda'");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "tensorrt|segment_size|1|unknown parameter 'segment_size' is provided for TensorRT Execution Accelerator",
                "cuda|arena_extend|1|unknown parameter 'arena_extend' is provided for CUDA Execution Accelerator",
                "cuda|device_id|1|name it in gpus of the instance group",
                "cuda|user_compute_stream|7|each session makes its stream",
                "tensorrt|precision_mode|FP8|unsupported precision mode 'FP8'",
                "tensorrt|max_workspace_size_bytes|abc|is 'abc' (expected: a number of bytes",
                "tensorrt|trt_builder_optimization_level|6|expected: a whole number from 0 to 5",
                "tensorrt|trt_auxiliary_streams|-2|expected: a whole number >= -1",
                "tensorrt|trt_sparsity_enable|yes|expected: 1 or true, 0 or false",
                "tensorrt|trt_engine_cache_path|engines|expected: an absolute path",
                "tensorrt|trt_engine_cache_prefix|../x|the name of a file without a directory",
                "tensorrt|trt_ep_context_file_path|/etc/x|the name of a file without a directory",
                "tensorrt|trt_profile_min_shapes|a:1xb|expected: shapes of inputs",
                "tensorrt|trt_profile_min_shapes|a:1|expected: all of them",
                "tensorrt|int8_calibration_table_name|t|without precision_mode INT8",
                "cuda|cudnn_conv_algo_search|FAST|one of 0, 1, 2, DEFAULT, EXHAUSTIVE, HEURISTIC",
                "cuda|gpu_mem_limit|18446744073709551616|is '18446744073709551616'",
                "auto_mixed_precision|a|b|unknown Execution Accelerator 'auto_mixed_precision' is requested",
                "gpu_io|a|b|ONNX Runtime copies inputs and outputs itself"
            })
    void whatIsNotAnOptionIsRefusedByName(String accelerator, String key, String value, String text) {
        refused(() -> read(Map.of(), new ExecutionAccelerator(accelerator, Map.of(key, value))), text);
    }

    @Test
    void cudaGraphsAreRefused() {
        for (ExecutionAccelerator each :
                List.of(cuda(Map.of("enable_cuda_graph", "1")), tensorRt(Map.of("trt_cuda_graph_enable", "true")))) {
            assertThatThrownBy(() -> read(Map.of(), each))
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNIMPLEMENTED))
                    .hasMessageContaining("CUDA graphs");
        }
        refused(() -> read(Map.of(), cuda(Map.of()), cuda(Map.of())), "is requested twice");
    }

    private static void refused(org.assertj.core.api.ThrowableAssert.ThrowingCallable call, String text) {
        assertThatThrownBy(call).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e.describe()).contains(text);
        });
    }
}
