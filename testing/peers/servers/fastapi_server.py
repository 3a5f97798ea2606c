# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
A server written by hand with FastAPI, in the fast way: orjson in and out, the model called on the event loop (uvicorn runs one worker
for each core). Started by "uvicorn fastapi_server:app".
"""

import orjson
from fastapi import FastAPI, Request, Response

from models import Model

app = FastAPI()
model = Model()


@app.post("/predict")
async def predict(request: Request):
    return Response(orjson.dumps(model.columns(orjson.loads(await request.body()))), media_type="application/json")


@app.post("/raw")
async def raw(request: Request):
    return Response(model.raw(await request.body()), media_type="application/octet-stream")
