# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of pyarrow, polars and pandas as Arrow IPC streams, against the same requests in JSON; the Python of docs/ARROW.md."""
import gzip
import io
import json
import re
import shutil

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from models import NUMPY, add_identity
from server import EXAMPLES, ROOT, Server, samples

STREAM = "application/vnd.apache.arrow.stream"
SKLEARN = ROOT / "backends/sklearn/src/test/resources/models/1.9.1"
EXPECTED = json.loads((SKLEARN / "expected.json").read_text())
FOREST, NAMED, MIXED = "forest", "lgbm_frame", "frame_model"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    repository = tmp_path_factory.mktemp("arrow")
    for datatype in [*NUMPY, "BYTES"]:
        add_identity(repository, f"identity_{datatype.lower()}", datatype, batch=0)
        add_identity(repository, f"matrix_{datatype.lower()}", datatype, dims="-1, -1", batch=0)
    for name in (FOREST, NAMED, MIXED):
        (repository / name / "1").mkdir(parents=True)
        file = SKLEARN / EXPECTED[name]["file"]
        shutil.copy(file, repository / name / "1" / f"model{file.suffix}")
    shutil.copytree(EXAMPLES / "iris", repository / "iris")
    server = Server(repository, environment=samples())
    yield server
    assert server.process.poll() is None, "the server died:\n" + "".join(server.lines)
    assert server.stop() == 0


def stream(table, **options):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def post(server, model, body, query="", **headers):
    head = {"Content-Type": STREAM, **{k.replace("_", "-"): v for k, v in headers.items()}}
    return server.ask("POST", f"/v2/models/{model}/infer{query}", body, head)


def infer(server, model, table, query="", **headers):
    status, head, reply = post(server, model, table if isinstance(table, bytes) else stream(table), query, **headers)
    assert status == 200, reply
    assert head["content-type"] == STREAM
    answer = pa.ipc.open_stream(reply).read_all()
    answer.validate(full=True)
    return answer


def refused(server, model, table, *texts, status=400, **headers):
    code, head, reply = post(server, model, table if isinstance(table, bytes) else stream(table), **headers)
    assert (code, head["content-type"]) == (status, "application/json"), reply
    error = json.loads(reply)["error"]
    for text in texts:
        assert text in error, error


ARRAYS = {
    **{t: np.array([0, 1, 100], dtype=kind) for t, kind in NUMPY.items()},
    "FP32": np.array([-0.0, np.inf, 1e-45], dtype=np.float32),
    "BYTES": np.array(["a", "", "é\U0001f600 and more than a view"], dtype=object),
}


@pytest.mark.parametrize("datatype", ARRAYS)
def test_every_type_returns_as_it_was_sent(server, datatype):
    array = pa.array(ARRAYS[datatype])
    answer = infer(server, f"identity_{datatype.lower()}", pa.table({"INPUT0": array}))
    assert answer.column_names == ["OUTPUT0"]
    assert answer["OUTPUT0"].to_pylist() == array.to_pylist()
    assert answer.schema.field(0).type == array.type
    lists = pa.FixedSizeListArray.from_arrays(pa.array(np.tile(ARRAYS[datatype], 2)), 2)
    answer = infer(server, f"matrix_{datatype.lower()}", pa.table({"INPUT0": lists}))
    assert answer["OUTPUT0"].to_pylist() == lists.to_pylist()


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()])
def test_every_form_of_text(server, kind):
    values = ["a", "", "a text that is longer than a view"]
    texts = [v.encode() for v in values] if "binary" in str(kind) else values
    answer = infer(server, "identity_bytes", pa.table({"INPUT0": pa.array(texts, type=kind)}))
    assert answer["OUTPUT0"].to_pylist() == values


def test_bytes_that_are_not_utf8_are_binary(server):
    answer = infer(server, "identity_bytes", pa.table({"INPUT0": [b"\xff\x00", b"a"]}))
    assert answer["OUTPUT0"].type == pa.binary()
    assert answer["OUTPUT0"].to_pylist() == [b"\xff\x00", b"a"]


def features(name):
    rows = EXPECTED[name]["rows"]
    names = EXPECTED[name]["columns"] or [f"c{i}" for i in range(len(rows[0]))]
    return pa.table({n: [row[i] for row in rows] for i, n in enumerate(names)})


def as_json(server, model, table):
    rows = np.array([table[c].to_pylist() for c in table.column_names]).T
    status, _, reply = server.ask("GET", f"/v2/models/{model}")
    tensor = json.loads(reply)["inputs"][0]
    body = {"inputs": [{"name": tensor["name"], "datatype": tensor["datatype"], "shape": rows.shape, "data": rows.tolist()}]}
    status, _, reply = server.ask("POST", f"/v2/models/{model}/infer", json.dumps(body))
    assert status == 200, reply
    return {o["name"]: np.array(o["data"]).reshape(o["shape"]) for o in json.loads(reply)["outputs"]}


def same(answer, outputs):
    assert answer.column_names == list(outputs)
    for name, values in outputs.items():
        column = np.array(answer[name].to_pylist())
        np.testing.assert_array_equal(column.reshape(values.shape), values)


def test_columns_are_the_features_of_a_forest(server):
    table = features(FOREST)
    expected = as_json(server, FOREST, table)
    same(infer(server, FOREST, table), expected)
    parts = pa.concat_tables([table.slice(0, 5), table.slice(5, 1), table.slice(6)])
    same(infer(server, FOREST, parts), expected)
    same(infer(server, FOREST, stream(table, use_legacy_format=True, metadata_version=pa.ipc.MetadataVersion.V4)), expected)
    same(infer(server, FOREST, gzip.compress(stream(table)), Content_Encoding="gzip"), expected)
    status, head, reply = post(server, FOREST, stream(table), Accept="application/json")
    assert (status, head["content-type"]) == (200, "application/json")
    assert [o["name"] for o in json.loads(reply)["outputs"]] == list(expected)


def test_features_are_matched_by_name(server):
    table = features(NAMED)
    expected = as_json(server, NAMED, table)
    same(infer(server, NAMED, table.select(table.column_names[::-1])), expected)
    first, *others = table.column_names
    refused(server, NAMED, table.select(others), f"no column for the features [{first}]")
    refused(server, NAMED, table.append_column("target", table[first]), "columns that are not features", "[target]")


def test_columns_of_numbers_and_texts_are_inputs(server):
    rows = EXPECTED[MIXED]["rows"]
    table = pa.table({n: [row[i] for row in rows] for i, n in enumerate(EXPECTED[MIXED]["columns"])})
    assert table["city"].type == pa.string()
    answer = infer(server, MIXED, table, "?outputs=predict")
    assert answer["predict"].to_pylist() == EXPECTED[MIXED]["answers"]["predict"]


def test_polars_and_pandas(server):
    table = features(FOREST)
    expected = as_json(server, FOREST, table)
    body = io.BytesIO()
    pl.from_arrow(table).write_ipc_stream(body)
    reply = post(server, FOREST, body.getvalue())[2]
    frame = pl.read_ipc_stream(reply)
    assert frame.columns == list(expected)
    frame = table.to_pandas()
    same(infer(server, FOREST, pa.Table.from_pandas(frame, preserve_index=False)), expected)
    indexed = frame.set_index(pd.Index(range(7, 7 + len(frame))))
    assert len(infer(server, FOREST, pa.Table.from_pandas(indexed, preserve_index=False)).to_pandas()) == len(frame)
    refused(server, FOREST, pa.Table.from_pandas(indexed, preserve_index=True), "does not fit input", "preserve_index=False")
    texts = io.BytesIO()
    pl.DataFrame({"INPUT0": ["short", "a text that is longer than a view"]}).write_ipc_stream(texts)
    assert infer(server, "identity_bytes", texts.getvalue())["OUTPUT0"].to_pylist() == ["short", "a text that is longer than a view"]
    categories = io.BytesIO()
    pl.DataFrame({"INPUT0": ["a", "b"]}, schema={"INPUT0": pl.Categorical}).write_ipc_stream(categories)
    refused(server, "identity_bytes", categories.getvalue(), "column 'INPUT0'", "dictionary", "cast(pl.String)")


def test_nulls(server):
    answer = infer(server, "identity_fp32", pa.table({"INPUT0": pa.array([1.5, None, 2.5], pa.float32())}))
    assert np.isnan(answer["OUTPUT0"][1].as_py()) and answer["OUTPUT0"][2].as_py() == 2.5
    refused(server, "identity_int32", pa.table({"INPUT0": pa.array([1, None], pa.int32())}), "column 'INPUT0' has a null in row 1")
    refused(server, "identity_bytes", pa.table({"INPUT0": ["a", None]}), "column 'INPUT0' has a null in row 1", "fill_null")


@pytest.mark.parametrize("column,text", [
    (pa.array(["a", "b"]).dictionary_encode(), "dictionary_decode()"),
    (pa.array([0, 1], pa.timestamp("us")), "timestamp"),
    (pa.array([0, 1], pa.date32()), "date"),
    (pa.array([[1.0], [2.0, 3.0]]), "fixed-size lists"),
    (pa.array([{"a": 1}, {"a": 2}]), "flatten()"),
    (pa.array([None, None]), "null"),
    (pa.array(["a", "b"]), "utf8"),
])
def test_columns_that_are_not_numbers_are_refused_by_name(server, column, text):
    refused(server, "identity_fp32", pa.table({"INPUT0": column}), "column 'INPUT0'", text)


def test_bad_streams(server):
    table = features(FOREST)
    for codec in ("lz4", "zstd"):
        refused(server, FOREST, stream(table, compression=codec), codec.upper(), "compression=None")
    refused(server, FOREST, stream(table)[:-100], "damaged")
    refused(server, FOREST, b"", "the body is empty")
    refused(server, FOREST, b"{}", "damaged")
    file = pa.BufferOutputStream()
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    refused(server, FOREST, file.getvalue().to_pybytes(), "new_stream")
    file_type = "application/vnd.apache.arrow.file"
    refused(server, FOREST, file.getvalue().to_pybytes(), STREAM, status=415, Content_Type=file_type)
    refused(server, "nosuch", table, "nosuch", status=404)


def test_options(server):
    table = features(FOREST)
    output = list(as_json(server, FOREST, table))[0]
    answer = infer(server, FOREST, table, f"?id=a%20b&outputs={output}")
    assert answer.column_names == [output]
    assert (answer.schema.metadata[b"id"], answer.schema.metadata[b"model_name"]) == (b"a b", FOREST.encode())
    keys = {"id": "7", "outputs": json.dumps([output]), "parameters": json.dumps({"priority": 0})}
    answer = infer(server, FOREST, table.replace_schema_metadata(keys))
    assert answer.column_names == [output] and answer.schema.metadata[b"id"] == b"7"
    refused(server, FOREST, table.replace_schema_metadata({"outputs": "nosuch"}), "nosuch")
    refused(server, FOREST, table.replace_schema_metadata({"parameters": "[]"}), "parameters")


def test_many_rows(server):
    rows = np.random.default_rng(1).normal(size=(100_000, 16))
    table = pa.table({"INPUT0": pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), 16)})
    answer = infer(server, "matrix_fp64", table)
    flat = answer["OUTPUT0"].combine_chunks().flatten().to_numpy()
    np.testing.assert_array_equal(flat, rows.ravel())


def test_the_python_of_the_document(server, capsys):
    text = (ROOT / "docs/ARROW.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(block.replace("localhost:8080", server.base), {"__name__": "document"})
        assert capsys.readouterr().out == "[0, 1]\n"
