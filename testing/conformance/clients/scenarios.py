# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The model repository of the scheduling and management suites: models without files, each with its config.pbtxt."""

INT = 'input { name: "%s" data_type: TYPE_INT32 dims: [ %s ] }\n'
CONTROLS = """
  control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
  control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } }
"""
ALL_CONTROLS = CONTROLS + """
  control_input { name: "END" control { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } }
  control_input { name: "CORRID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_%s } }
"""
SUMS = """
input { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] }
output { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] }
instance_group { kind: KIND_CPU count: 1 }
"""


def identity(batch=8, dims="-1", extra="", delay=0, kind="FP32"):
    return (
        f'backend: "identity"\nmax_batch_size: {batch}\n'
        f'input {{ name: "INPUT0" data_type: TYPE_{kind} dims: [ {dims} ] }}\n'
        f'output {{ name: "OUTPUT0" data_type: TYPE_{kind} dims: [ {dims} ] }}\n'
        + (f'parameters {{ key: "execute_delay_ms" value {{ string_value: "{delay}" }} }}\n' if delay else "")
        + extra
    )


ONE = "instance_group { kind: KIND_CPU count: 1 }\n"

ADD_SUB = """backend: "add_sub"
max_batch_size: 8
input { name: "INPUT0" data_type: TYPE_INT32 dims: [ 16 ] }
input { name: "INPUT1" data_type: TYPE_INT32 dims: [ 16 ] }
output { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 16 ] }
output { name: "OUTPUT1" data_type: TYPE_INT32 dims: [ 16 ] }
"""

MODELS = {
    "add_sub": ADD_SUB + "dynamic_batching { }\n",
    "batched": identity(extra="dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 500000 }\n" + ONE),
    "ordered": identity(delay=20, extra="dynamic_batching { preserve_ordering: true }\ninstance_group { kind: KIND_CPU count: 2 }\n"),
    "queue_limit": identity(
        delay=400, extra="dynamic_batching { default_queue_policy { max_queue_size: 2 } preferred_batch_size: [ 1 ] }\n" + ONE),
    "queue_timeout": identity(
        delay=700,
        extra="dynamic_batching { preferred_batch_size: [ 1 ] default_queue_policy {"
        " timeout_action: REJECT default_timeout_microseconds: 200000 allow_timeout_override: true } }\n" + ONE),
    "queue_override": identity(
        delay=700,
        extra="dynamic_batching { preferred_batch_size: [ 1 ] default_queue_policy { allow_timeout_override: true } }\n" + ONE),
    "queue_delay": identity(
        delay=300,
        extra="dynamic_batching { preferred_batch_size: [ 1 ] default_queue_policy {"
        " timeout_action: DELAY default_timeout_microseconds: 0 allow_timeout_override: true } }\n" + ONE),
    "priorities": identity(
        delay=150,
        extra="dynamic_batching { preferred_batch_size: [ 1 ] priority_levels: 3 default_priority_level: 2 }\n" + ONE),
    "slow_default": identity(delay=500, extra=ONE),
    "cached": identity(batch=8, delay=100, extra="response_cache { enable: true }\n" + ONE),
    "reshaped": """backend: "identity"
max_batch_size: 8
input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ 2, 2 ] } }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ 2, 2 ] } }
""",
    "optional": """backend: "identity"
max_batch_size: 8
input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] }
input { name: "INPUT1" data_type: TYPE_FP32 dims: [ 4 ] optional: true }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] }
output { name: "OUTPUT1" data_type: TYPE_FP32 dims: [ 4 ] }
dynamic_batching { max_queue_delay_microseconds: 100000 }
""",
    "tagged": identity(extra='metric_tags { key: "team" value: "sea" }\n'),
    "repeat": """backend: "repeat"
max_batch_size: 0
input { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] }
input { name: "DELAY" data_type: TYPE_UINT32 dims: [ -1 ] }
input { name: "WAIT" data_type: TYPE_UINT32 dims: [ 1 ] }
output { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] }
output { name: "IDX" data_type: TYPE_UINT32 dims: [ 1 ] }
model_transaction_policy { decoupled: true }
""",
    "square": """backend: "square"
max_batch_size: 0
input { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] }
output { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] }
model_transaction_policy { decoupled: true }
""",
    "countdown": """backend: "iterative_sequence"
max_batch_size: 0
input { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] }
output { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] }
model_transaction_policy { decoupled: true }
sequence_batching { iterative_sequence: true
  control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
  control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } } }
""",
    "direct": 'backend: "sequence"\nmax_batch_size: 4\n' + SUMS
    + "sequence_batching { max_sequence_idle_microseconds: 1500000\n" + CONTROLS + "}\n",
    "oldest": 'backend: "dyna_sequence"\nmax_batch_size: 4\n' + SUMS
    + "sequence_batching { max_sequence_idle_microseconds: 1500000\n" + ALL_CONTROLS % "UINT64"
    + "  oldest { max_candidate_sequences: 4 max_queue_delay_microseconds: 1000 } }\n",
    "texts": 'backend: "dyna_sequence"\nmax_batch_size: 4\n' + SUMS
    + "sequence_batching {\n" + ALL_CONTROLS % "STRING" + "  oldest { max_candidate_sequences: 4 } }\n",
    "one_slot": 'backend: "sequence"\nmax_batch_size: 1\n' + SUMS
    + "sequence_batching { max_sequence_idle_microseconds: 700000\n" + CONTROLS + "}\n",
    "state": 'backend: "implicit_state"\nmax_batch_size: 4\n' + SUMS
    + "sequence_batching {\n" + CONTROLS
    + """  state { input_name: "STATE_IN" output_name: "STATE_OUT" data_type: TYPE_INT32 dims: [ 1 ]
    initial_state { name: "zeros" data_type: TYPE_INT32 dims: [ 1 ] zero_data: true } } }
""",
    "state_file": 'backend: "implicit_state"\nmax_batch_size: 4\n' + SUMS
    + "sequence_batching {\n" + CONTROLS
    + """  state { input_name: "STATE_IN" output_name: "STATE_OUT" data_type: TYPE_INT32 dims: [ 1 ]
    initial_state { name: "hundred" data_type: TYPE_INT32 dims: [ 1 ] data_file: "hundred" } } }
""",
    "ensemble": """platform: "ensemble"
max_batch_size: 8
input { name: "A" data_type: TYPE_INT32 dims: [ 16 ] }
input { name: "B" data_type: TYPE_INT32 dims: [ 16 ] }
output { name: "SUM" data_type: TYPE_INT32 dims: [ 16 ] }
output { name: "TWICE_A" data_type: TYPE_INT32 dims: [ 16 ] }
ensemble_scheduling {
  step { model_name: "add_sub" model_version: -1
    input_map { key: "INPUT0" value: "A" } input_map { key: "INPUT1" value: "B" }
    output_map { key: "OUTPUT0" value: "SUM" } output_map { key: "OUTPUT1" value: "difference" } }
  step { model_name: "add_sub" model_version: -1
    input_map { key: "INPUT0" value: "SUM" } input_map { key: "INPUT1" value: "difference" }
    output_map { key: "OUTPUT0" value: "TWICE_A" } }
}
""",
    "nested": """platform: "ensemble"
max_batch_size: 8
input { name: "A" data_type: TYPE_INT32 dims: [ 16 ] }
output { name: "FOUR_A" data_type: TYPE_INT32 dims: [ 16 ] }
ensemble_scheduling {
  step { model_name: "ensemble" model_version: -1
    input_map { key: "A" value: "A" } input_map { key: "B" value: "A" }
    output_map { key: "TWICE_A" value: "two" } }
  step { model_name: "add_sub" model_version: -1
    input_map { key: "INPUT0" value: "two" } input_map { key: "INPUT1" value: "two" }
    output_map { key: "OUTPUT0" value: "FOUR_A" } }
}
""",
    "decoupled_ensemble": """platform: "ensemble"
max_batch_size: 0
input { name: "N" data_type: TYPE_INT32 dims: [ 1 ] }
output { name: "RESULT" data_type: TYPE_INT32 dims: [ 1 ] }
ensemble_scheduling {
  step { model_name: "square" model_version: -1
    input_map { key: "IN" value: "N" } output_map { key: "OUT" value: "each" } }
  step { model_name: "echo" model_version: -1
    input_map { key: "INPUT0" value: "each" } output_map { key: "OUTPUT0" value: "RESULT" } }
}
""",
    "echo": identity(batch=0, dims="1", kind="INT32"),
    "slow_ensemble": """platform: "ensemble"
max_batch_size: 8
input { name: "X" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] }
ensemble_scheduling {
  step { model_name: "slow_default" model_version: -1
    input_map { key: "INPUT0" value: "X" } output_map { key: "OUTPUT0" value: "mid" } }
  step { model_name: "slow_default" model_version: -1
    input_map { key: "INPUT0" value: "mid" } output_map { key: "OUTPUT0" value: "Y" } }
}
""",
}


RAGGED = """backend: "onnxruntime"
max_batch_size: 8
input { name: "VALUES" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }
output { name: "SUM" data_type: TYPE_FP32 dims: [ 1 ] }
batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO target_name: "BOUNDS" data_type: TYPE_INT32 source_input: "VALUES" }
dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 500000 }
"""


def add(repository, name, text, versions=(1,)):
    folder = repository / name
    for version in versions:
        (folder / str(version)).mkdir(parents=True, exist_ok=True)
    (folder / "config.pbtxt").write_text(text)
    return folder


def build(repository):
    for name, text in MODELS.items():
        add(repository, name, text)
    (repository / "state_file" / "initial_state").mkdir()
    (repository / "state_file" / "initial_state" / "hundred").write_bytes((100).to_bytes(4, "little"))
    return repository
