# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The rows of the table."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Row:
    """
    A load on a workload. A row of kind "saturation" has a fixed number of requests in flight; its open form sends at random times, at
    half of the rate that the best peer reached. A row of kind "stream" has a fixed number of streams of events; its rates are of events
    and its latencies those of the first. A row of kind "start" starts the server anew in each round, with copies of the model.
    """

    name: str
    title: str
    workload: str
    form: str
    connections: int = 1
    streams: int = 1
    open: bool = False
    kind: str = "saturation"
    copies: int = 1


ROWS = (
    Row("tiny-rest-1", "tiny model, REST JSON, 1 connection", "tiny", "json", 1),
    Row("tiny-rest-16", "tiny model, REST JSON, 16 connections", "tiny", "json", 16, open=True),
    Row("tiny-grpc-1", "tiny model, gRPC, 1 connection", "tiny", "grpc", 1),
    Row("tiny-grpc-16", "tiny model, gRPC, 16 connections", "tiny", "grpc", 16),
    Row("tiny-grpc-4x16", "tiny model, gRPC, 4 connections of 16 streams", "tiny", "grpc", 4, 16),
    Row("large-rest", "4.8 MB there and back, REST binary, 4 connections", "large", "binary", 4),
    Row("large-grpc", "4.8 MB there and back, gRPC, 4 connections", "large", "grpc", 4),
    Row("forest", "random forest of 100 trees, one row, REST JSON, 16 connections", "forest", "json", 16, open=True),
    Row("boosted", "XGBoost, 100 trees, one row, REST JSON, 16 connections", "boosted", "json", 16, open=True),
    Row("encoder-16", "MiniLM, 16 tokens, REST binary, 16 in flight", "encoder", "binary", 16),
    Row("encoder-64", "MiniLM, 16 tokens, REST binary, 64 in flight", "encoder", "binary", 64, open=True),
    Row("image", "ResNet-18, one image, REST binary, 4 connections", "image", "binary", 4, open=True),
    Row("torchscript", "ResNet-18 as TorchScript, one image, REST binary, 4 connections", "torchscript", "binary", 4),
    Row("tflite", "MobileNetV2 for TensorFlow Lite, one image, REST binary, 4 connections", "tflite", "binary", 4),
    Row("savedmodel", "MobileNetV2 as a SavedModel, one image, REST binary, 4 connections", "savedmodel", "binary", 4),
    Row("ensemble", "text to its embedding in one request: tokenizer, MiniLM, pooling; REST JSON, 16 connections", "ensemble", "json", 16),
    Row("stream-1", "streams of 64 events from a model in Python, one after the other; events/s, and ms to the first", "stream", "stream", 1, kind="stream"),
    Row("stream-16", "the same, 16 at once; events/s, and ms to the first", "stream", "stream", 16, kind="stream"),
    Row("python", "a model in Python, sum and difference with numpy, REST JSON, 16 connections", "python", "json", 16, open=True),
    Row("start", "start to the first right answer and memory, tiny model", "tiny", "json", kind="start"),
    Row("start-100", "the same with 100 tiny models", "tiny", "json", kind="start", copies=100),
)

BY_NAME = {row.name: row for row in ROWS}
SHORT = ("tiny-rest-16", "ensemble", "stream-16")
SHORT_PEERS = ("fastapi", "litserve")
