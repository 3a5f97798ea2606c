# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
Nereid, a server of machine-learning models, with its own Java runtime inside this package.

    import nereid

    with nereid.serve("model.joblib") as server:
        print(server.client().infer("model", {"input": [[5.1, 3.5, 1.4, 0.2]]}))

On the command line: ``nereid serve model.joblib``.
"""

from ._client import Client, InferenceServerException
from ._program import program, version
from ._server import Server, ServerError, serve

__all__ = ["Client", "InferenceServerException", "Server", "ServerError", "program", "serve", "version"]
__version__ = version()
