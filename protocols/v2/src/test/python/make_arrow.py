# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the Arrow streams that the tests read, with pyarrow and polars:      python3 make_arrow.py"""
import decimal
import pathlib

import numpy as np
import polars as pl
import pyarrow as pa

HERE = pathlib.Path(__file__).resolve().parents[1] / "resources" / "arrow"


def write(name, table, batch=None, **options):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=batch)
    (HERE / f"{name}.arrows").write_bytes(sink.getvalue())


def column(values, kind):
    return pa.array(values, type=kind)


NUMBERS = {
    **{f"int{b}": getattr(pa, f"int{b}")() for b in (8, 16, 32, 64)},
    **{f"uint{b}": getattr(pa, f"uint{b}")() for b in (8, 16, 32, 64)},
    "float32": pa.float32(),
    "float64": pa.float64(),
}
types = {name: column([1, 2, 3], kind) for name, kind in NUMBERS.items()}
types["float16"] = pa.array(np.array([1, 2, 3], dtype=np.float16))
types["bool"] = column([True, False, True], pa.bool_())
for name, kind in {
    "utf8": pa.string(), "large_utf8": pa.large_string(), "binary": pa.binary(), "large_binary": pa.large_binary(),
    "utf8_view": pa.string_view(), "binary_view": pa.binary_view(),
}.items():
    values = ["a", "", "a text that is longer than a view"]
    types[name] = column([v.encode() for v in values] if "binary" in name else values, kind)
types["list"] = column([[1, 2], [3, 4], [5, 6]], pa.list_(pa.float32(), 2))
types["nested"] = column([[[1, 2], [3, 4], [5, 6]]] * 3, pa.list_(pa.list_(pa.int32(), 2), 3))
types["tensor"] = pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(18, dtype=np.float32).reshape(3, 2, 3))
table = pa.table(types)
write("types", table)
write("batches", table, batch=2)
write("legacy", table.select(list(NUMBERS)), use_legacy_format=True, metadata_version=pa.ipc.MetadataVersion.V4)
write("empty", table.slice(0, 0))
no_batch = pa.BufferOutputStream()
pa.ipc.new_stream(no_batch, table.schema).close()
(HERE / "schema.arrows").write_bytes(no_batch.getvalue())

iris = pa.table({
    "sepal length": [5.1, 6.2, 4.9], "sepal width": [3.5, 2.9, 3.0], "petal length": [1.4, 4.3, 1.5], "petal width": [0.2, 1.3, 0.1],
})
write("iris", iris)
write("options", iris.replace_schema_metadata({"id": "r-7", "outputs": "b, a", "parameters": '{"priority":2,"note":"x"}'}))
write("mixed", pa.table({
    "a": column([1, 2, 3], pa.int64()), "b": column([0.5, 1e300, float("nan")], pa.float64()), "c": column([True, False, True], pa.bool_()),
    "d": column([2**64 - 1, 0, 7], pa.uint64()),
}))
write("nulls", pa.table({"real": column([1.5, None, 2.5], pa.float64()), "list": column([[1, None], [3, 4], [None, 6]], pa.list_(pa.float32(), 2))}))
write("null_int", pa.table({"x": column([1, 2, None], pa.int32())}))
write("null_text", pa.table({"x": column(["a", None], pa.string())}))
write("null_list", pa.table({"x": column([[1, 2], None], pa.list_(pa.float32(), 2))}))
write("dictionary", pa.table({"x": column(["a", "b", "a"], pa.string()).dictionary_encode()}))
write("timestamp", pa.table({"x": column([0, 1], pa.timestamp("us"))}))
write("decimal", pa.table({"x": [decimal.Decimal("1.5")]}))
write("lists", pa.table({"x": [[1.0], [2.0, 3.0]]}))
write("struct", pa.table({"x": [{"a": 1}]}))
write("lz4", iris, compression="lz4")
write("zstd", iris, compression="zstd")
pl.DataFrame({"x": ["short", "a text that is longer than a view", ""]}).write_ipc_stream(HERE / "polars.arrows")
with pa.ipc.new_file(str(HERE / "file.arrow"), iris.schema) as writer:
    writer.write_table(iris)
