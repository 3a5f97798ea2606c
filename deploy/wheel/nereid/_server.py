# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""A server as a child process, for notebooks and tests."""

import atexit
import collections
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from types import TracebackType
from typing import Deque, Dict, List, Mapping, Optional, Type, Union

from ._client import Client
from ._program import program

Option = Union[str, int, float, bool, os.PathLike]


class ServerError(RuntimeError):
    """The server did not start, or has ended. Its last lines are in the message."""


class Server:
    """
    A running server. Use it as a context manager, or call :meth:`stop`; it also ends with this Python process.

    ``port`` serves HTTP and gRPC alike: ``url`` is for REST, ``address`` for gRPC clients such as ``tritonclient.grpc``.
    """

    def __init__(self, arguments: List[str], port: int, environment: Mapping[str, str], timeout: float) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.address = f"127.0.0.1:{port}"
        self._lines: Deque[str] = collections.deque(maxlen=200)
        self._process = subprocess.Popen(
            [program(), *arguments],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self._reader = threading.Thread(target=self._read, name="nereid-log", daemon=True)
        self._reader.start()
        atexit.register(self.stop)
        try:
            self._wait(timeout)
        except BaseException:
            self.stop()
            raise

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append(line)

    def _wait(self, timeout: float) -> None:
        end = time.monotonic() + timeout
        while True:
            code = self._process.poll()
            if code is not None:
                self._reader.join(timeout=5)
                raise ServerError(f"the server ended with {code}:\n{self.log()}")
            try:
                with urllib.request.urlopen(self.url + "/v2/health/ready", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                pass
            if time.monotonic() > end:
                raise ServerError(f"the server was not ready after {timeout:g} s:\n{self.log()}")
            time.sleep(0.02)

    def log(self) -> str:
        """The last lines of the server's log."""
        return "".join(self._lines)

    def running(self) -> bool:
        """Whether the process is alive."""
        return self._process.poll() is None

    def client(self, timeout: float = 60) -> Client:
        """A client of this server."""
        return Client(self.url, timeout=timeout)

    def stop(self, timeout: float = 30) -> None:
        """Lets requests in progress end, and stops the server. Does nothing when it has ended."""
        atexit.unregister(self.stop)
        if self.running():
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._reader.join(timeout=5)

    def __enter__(self) -> "Server":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.stop()


def serve(
    *models: Union[str, os.PathLike],
    port: int = 0,
    options: Optional[Mapping[str, Option]] = None,
    environment: Optional[Dict[str, str]] = None,
    timeout: float = 120,
) -> Server:
    """
    Starts a server on the loopback address, and returns when its models are ready.

    ``models``: files of models, folders of one, or repositories, as ``nereid serve`` takes them. A file's name without its
    ending is the model's name.

    ``port``: 0 for a free one.

    ``options``: flags of ``nereid serve`` without their dashes, such as ``{"log-level": "debug", "strict-readiness": False}``.

    ``environment``: variables in addition to those of this process.

    Raises ``FileNotFoundError`` for a path that does not exist, and ``ServerError`` when the server does not start.
    """
    if not models:
        raise ValueError("there is nothing to serve; give the path of a model or a repository")
    for model in models:
        if not pathlib.Path(model).exists():
            raise FileNotFoundError(f"{os.fspath(model)} does not exist")
    chosen = port or _free_port()
    arguments = ["serve", *(os.fspath(model) for model in models), "--host", "127.0.0.1", "--port", str(chosen)]
    for name, value in (options or {}).items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        arguments.append(f"--{name}={text}")
    return Server(arguments, chosen, environment or {}, timeout)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
