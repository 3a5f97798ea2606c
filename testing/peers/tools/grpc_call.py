# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Sends the bytes of a message to a gRPC method and writes those of the answer: "grpc_call.py PORT METHOD FILE"."""

import pathlib
import sys

import grpc

port, method, file = sys.argv[1:]
limits = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
with grpc.insecure_channel(f"127.0.0.1:{port}", options=limits) as channel:
    call = channel.unary_unary(method, request_serializer=None, response_deserializer=None)
    sys.stdout.buffer.write(call(pathlib.Path(file).read_bytes(), timeout=30, wait_for_ready=True))
