# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
import pathlib

import pytest

import models
from server import Server, samples


@pytest.fixture(scope="session")
def repository(tmp_path_factory) -> pathlib.Path:
    return models.build(tmp_path_factory.mktemp("repository"))


@pytest.fixture(scope="session")
def server(repository):
    server = Server(repository, "--poll-interval", "500ms", environment=samples())
    yield server
    assert server.process.poll() is None, "the server died:\n" + "".join(server.lines)
    assert server.stop() == 0
