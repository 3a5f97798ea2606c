# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
A server written by hand with FastAPI, in the fast way: orjson in and out, the model called on the event loop (uvicorn runs one worker
for each core). Started by "uvicorn fastapi_server:app".
"""

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse

from models import Model, copies

app = FastAPI()
model = Model()
further = {name: Model() for name in copies()}


@app.post("/predict")
async def predict(request: Request):
    return Response(orjson.dumps(model.columns(orjson.loads(await request.body()))), media_type="application/json")


@app.post("/raw")
async def raw(request: Request):
    return Response(model.raw(await request.body()), media_type="application/octet-stream")


@app.post("/predict/{name}")
async def predict_further(name: str, request: Request):
    return Response(orjson.dumps(further[name].columns(orjson.loads(await request.body()))), media_type="application/json")


@app.post("/stream")
async def stream(request: Request):
    prompt = orjson.loads(await request.body())["text_input"]

    async def events():
        for text in model.tokens(prompt):
            yield b"data: " + orjson.dumps({"text_output": text}) + b"\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")
