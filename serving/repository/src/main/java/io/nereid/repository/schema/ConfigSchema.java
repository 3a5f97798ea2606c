// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.schema;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The fields of configuration messages, as a table; above all those of Triton's model configuration. Immutable.
 *
 * <p>A line at the margin starts a message or an enumeration, an indented line is a field: name, type ({@code *} before
 * it: repeated; {@code map<K,V>}), the oneof it belongs to after {@code |}, and a mark:
 *
 * <ul>
 *   <li>none: honoured, or a message with honoured fields;
 *   <li>{@code ~}: accepted without effect, because it only tunes other hardware or names in a log;
 *   <li>{@code !}: not supported; accepted at its default value only;
 *   <li>{@code !!}: not supported; rejected whenever it is present;
 *   <li>{@code +}: an addition of this server to Triton's fields, shown only where it is given.
 * </ul>
 *
 * <p>{@link UnsupportedFields} has the reason why a field is not supported, and what to use instead. A few fields that
 * Triton itself accepts for TensorRT only are decided by the readers of their messages: {@code is_shape_tensor} and {@code profile}, as
 * far as a plan can have them here, and {@code is_non_linear_format_io} and {@code use_growable_memory}, which are rejected; for
 * other models all are rejected with Triton's texts. The fields without
 * effect are these:
 *
 * <table>
 * <caption>Fields without effect</caption>
 * <tr><td>{@code input.format}</td><td>checked against the number of dims</td></tr>
 * <tr><td>{@code optimization.priority}</td><td>priority of TensorRT's CUDA streams</td></tr>
 * <tr><td>{@code optimization.input_pinned_memory}, {@code output_pinned_memory}</td>
 *   <td>staging buffers for copies to a GPU</td></tr>
 * <tr><td>{@code optimization.gather_kernel_buffer_threshold}</td><td>when a GPU gathers the buffers of a
 * batch</td></tr> <tr><td>{@code optimization.eager_batching}</td><td>when copying to a GPU begins</td></tr>
 * </table>
 */
public final class ConfigSchema {
    private static final String TABLE = """
        ModelConfig
          name string
          platform string
          backend string
          runtime string !
          version_policy ModelVersionPolicy
          max_batch_size int32
          input *ModelInput
          output *ModelOutput
          batch_input *BatchInput
          batch_output *BatchOutput
          optimization ModelOptimizationPolicy
          dynamic_batching ModelDynamicBatching |scheduling_choice
          sequence_batching ModelSequenceBatching |scheduling_choice
          ensemble_scheduling ModelEnsembling |scheduling_choice
          instance_group *ModelInstanceGroup
          default_model_filename string
          cc_model_filenames map<string,string>
          metric_tags map<string,string>
          parameters map<string,ModelParameter>
          model_warmup *ModelWarmup
          model_operations ModelOperations
          model_transaction_policy ModelTransactionPolicy
          model_repository_agents ModelRepositoryAgents
          response_cache ModelResponseCache
          model_metrics ModelMetrics
        ModelInput
          name string
          data_type DataType
          format ModelInput.Format ~
          dims *int64
          reshape ModelTensorReshape
          is_shape_tensor bool
          allow_ragged_batch bool
          optional bool
          is_non_linear_format_io bool
        ModelOutput
          name string
          data_type DataType
          dims *int64
          reshape ModelTensorReshape
          label_filename string
          is_shape_tensor bool
          is_non_linear_format_io bool
        ModelTensorReshape
          shape *int64
        BatchInput
          kind BatchInput.Kind
          target_name *string
          data_type DataType
          source_input *string
        BatchOutput
          target_name *string
          kind BatchOutput.Kind
          source_input *string
        ModelInstanceGroup
          name string
          kind ModelInstanceGroup.Kind
          count int32
          rate_limiter ModelRateLimiter
          gpus *int32
          secondary_devices *SecondaryDevice !!
          profile *string
          passive bool
          host_policy string
        SecondaryDevice
          kind SecondaryDeviceKind
          device_id int64
        ModelRateLimiter
          resources *Resource
          priority uint32
        Resource
          name string
          global bool
          count uint32
        ModelVersionPolicy
          latest Latest |policy_choice
          all All |policy_choice
          specific Specific |policy_choice
        Latest
          num_versions uint32
        All
        Specific
          versions *int64
        ModelOptimizationPolicy
          graph Graph
          priority ModelPriority ~
          cuda Cuda
          execution_accelerators ExecutionAccelerators
          input_pinned_memory PinnedMemoryBuffer
          output_pinned_memory PinnedMemoryBuffer
          gather_kernel_buffer_threshold uint32 ~
          eager_batching bool ~
        Graph
          level int32
        Cuda
          graphs bool !
          busy_wait_events bool !
          graph_spec *GraphSpec !!
          output_copy_stream bool !
        GraphSpec
          batch_size int32
          input map<string,GraphShape>
          graph_lower_bound LowerBound
        GraphShape
          dim *int64
        LowerBound
          batch_size int32
          input map<string,GraphShape>
        ExecutionAccelerators
          gpu_execution_accelerator *Accelerator
          cpu_execution_accelerator *Accelerator
        Accelerator
          name string
          parameters map<string,string>
        PinnedMemoryBuffer
          enable bool ~
        ModelQueuePolicy
          timeout_action TimeoutAction
          default_timeout_microseconds uint64
          allow_timeout_override bool
          max_queue_size uint32
        ModelDynamicBatching
          preferred_batch_size *int32
          max_queue_delay_microseconds uint64
          preserve_ordering bool
          priority_levels uint64
          default_priority_level uint64
          default_queue_policy ModelQueuePolicy
          priority_queue_policy map<uint64,ModelQueuePolicy>
        ModelSequenceBatching
          direct StrategyDirect |strategy_choice
          oldest StrategyOldest |strategy_choice
          max_sequence_idle_microseconds uint64
          control_input *ControlInput
          state *State
          iterative_sequence bool
        StrategyDirect
          max_queue_delay_microseconds uint64
          minimum_slot_utilization float
        StrategyOldest
          max_candidate_sequences int32
          preferred_batch_size *int32
          max_queue_delay_microseconds uint64
          preserve_ordering bool
        ControlInput
          name string
          control *Control
        Control
          kind Control.Kind
          int32_false_true *int32
          fp32_false_true *float
          bool_false_true *bool
          data_type DataType
        State
          input_name string
          output_name string
          data_type DataType
          dims *int64
          initial_state *InitialState
          use_same_buffer_for_input_output bool
          use_growable_memory bool
        InitialState
          data_type DataType
          dims *int64
          name string
          zero_data bool |state_data
          data_file string |state_data
        ModelEnsembling
          step *Step
          max_inflight_requests uint32
        Step
          model_name string
          model_version int64
          input_map map<string,string>
          output_map map<string,string>
          model_namespace string !
          when string +
        ModelParameter
          string_value string
        ModelWarmup
          name string
          batch_size uint32
          inputs map<string,WarmupInput>
          count uint32
        WarmupInput
          data_type DataType
          dims *int64
          zero_data bool |input_data_type
          random_data bool |input_data_type
          input_data_file string |input_data_type
        ModelOperations
          op_library_filename *string
        ModelTransactionPolicy
          decoupled bool
        ModelRepositoryAgents
          agents *Agent
        Agent
          name string
          parameters map<string,string>
        ModelResponseCache
          enable bool
        ModelMetrics
          metric_control *MetricControl
        MetricControl
          metric_identifier MetricIdentifier
          histogram_options HistogramOptions
        MetricIdentifier
          family string
        HistogramOptions
          buckets *double
        enum DataType
          TYPE_INVALID TYPE_BOOL TYPE_UINT8 TYPE_UINT16 TYPE_UINT32 TYPE_UINT64 TYPE_INT8 TYPE_INT16 TYPE_INT32
          TYPE_INT64 TYPE_FP16 TYPE_FP32 TYPE_FP64 TYPE_STRING TYPE_BF16
        enum ModelInstanceGroup.Kind
          KIND_AUTO KIND_GPU KIND_CPU KIND_MODEL
        enum SecondaryDeviceKind
          KIND_NVDLA
        enum ModelInput.Format
          FORMAT_NONE FORMAT_NHWC FORMAT_NCHW
        enum BatchInput.Kind
          BATCH_ELEMENT_COUNT BATCH_ACCUMULATED_ELEMENT_COUNT BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO
          BATCH_MAX_ELEMENT_COUNT_AS_SHAPE BATCH_ITEM_SHAPE BATCH_ITEM_SHAPE_FLATTEN
        enum BatchOutput.Kind
          BATCH_SCATTER_WITH_INPUT_SHAPE
        enum ModelPriority
          PRIORITY_DEFAULT PRIORITY_MAX PRIORITY_MIN
        enum TimeoutAction
          REJECT DELAY
        enum Control.Kind
          CONTROL_SEQUENCE_START CONTROL_SEQUENCE_READY CONTROL_SEQUENCE_END CONTROL_SEQUENCE_CORRID
        """;

    /** The one table. */
    public static final ConfigSchema MODEL_CONFIG = new ConfigSchema(TABLE, "ModelConfig", "a model configuration");

    private final String root;
    private final String title;
    private final Map<String, Map<String, Field>> messages = new LinkedHashMap<>();
    private final Map<String, List<String>> enums = new LinkedHashMap<>();

    /**
     * A table.
     *
     * @param root the message type of a whole text
     * @param title the name of such a text in messages
     */
    public ConfigSchema(String table, String root, String title) {
        this.root = root;
        this.title = title;
        Map<String, Field> fields = Map.of();
        List<String> values = null;
        for (String line : table.lines().toList()) {
            String[] words = line.strip().split(" +");
            if (line.startsWith("enum ")) {
                values = new ArrayList<>();
                enums.put(words[1], values);
            } else if (!line.startsWith(" ")) {
                fields = new LinkedHashMap<>();
                messages.put(words[0], fields);
                values = null;
            } else if (values != null) {
                values.addAll(List.of(words));
            } else {
                Field field = Field.of(words);
                fields.put(field.name, field);
            }
        }
    }

    /** The message type of a whole text. */
    public String root() {
        return root;
    }

    /** The name of a whole text in messages. */
    String title() {
        return title;
    }

    /** The fields of a message by name, in the order of the documentation; null if the message is unknown. */
    public @Nullable Map<String, Field> fields(String type) {
        return messages.get(type);
    }

    /** The names of an enumeration by number; null if the enumeration is unknown. */
    public @Nullable List<String> enumeration(String type) {
        return enums.get(type);
    }

    /** The messages directly below the root that have a field of this name. */
    List<String> parentsOf(String name) {
        List<String> homes = new ArrayList<>();
        for (Field f : Objects.requireNonNull(messages.get(root)).values()) {
            Map<String, Field> inner = messages.get(f.type);
            if (inner != null && inner.containsKey(name)) {
                homes.add(f.name);
            }
        }
        return homes;
    }

    Iterable<String> messageNames() {
        return messages.keySet();
    }

    /** How a field is supported. */
    public enum Support {
        HONOURED,
        WITHOUT_EFFECT,
        ONLY_DEFAULT,
        REJECTED,
        ADDED
    }

    /** How often a field may be given. */
    public enum Cardinality {
        ONE,
        MANY,
        MAP
    }

    /**
     * One field.
     *
     * @param name its name
     * @param type scalar, enumeration or message; of a map, the type of its values
     * @param keyType of a map, the type of its keys; else empty
     * @param cardinality how often it may be given
     * @param oneof the group of which only one may be given, or empty
     * @param support how it is supported
     */
    public record Field(
            String name, String type, String keyType, Cardinality cardinality, String oneof, Support support) {
        static Field of(String[] words) {
            String type = words[1];
            String keyType = "";
            Cardinality cardinality = Cardinality.ONE;
            if (type.startsWith("*")) {
                cardinality = Cardinality.MANY;
                type = type.substring(1);
            } else if (type.startsWith("map<")) {
                cardinality = Cardinality.MAP;
                int comma = type.indexOf(',');
                keyType = type.substring(4, comma);
                type = type.substring(comma + 1, type.length() - 1);
            }
            String oneof = "";
            Support support = Support.HONOURED;
            for (int i = 2; i < words.length; i++) {
                switch (words[i]) {
                    case "~" -> support = Support.WITHOUT_EFFECT;
                    case "!" -> support = Support.ONLY_DEFAULT;
                    case "!!" -> support = Support.REJECTED;
                    case "+" -> support = Support.ADDED;
                    default -> oneof = words[i].substring(1);
                }
            }
            return new Field(words[0], type, keyType, cardinality, oneof, support);
        }
    }
}
