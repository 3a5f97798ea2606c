# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""A server with API keys and rules, for the tests of every client."""
import subprocess

from server import Server, program

RULES = """
roles:
  narrow:
    permissions: [infer, metadata]
    models: [sim*]
bindings:
  - key: slow
    quota: {requestsPerSecond: 1}
"""


def nereid(*arguments):
    """Runs a command that has to succeed."""
    done = subprocess.run([program(), *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done


class SecuredServer(Server):
    """`keys` has a key for each name: app (client), ops (admin), narrow (models sim*), slow (one request per second)."""

    def __init__(self, directory, *arguments):
        self.key_file = directory / "keys.json"
        roles = {"app": "client", "ops": "admin", "narrow": "narrow", "slow": "client"}
        self.keys = {name: self.create(name, role) for name, role in roles.items()}
        rules = directory / "access.yaml"
        rules.write_text(RULES)
        super().__init__(*arguments, "--api-keys", self.key_file, "--access-config", rules)

    def create(self, name, role):
        made = nereid("keys", "create", name, "--file", self.key_file, "--role", role)
        return made.stdout.strip().splitlines()[-1]

    def bearer(self, name):
        return {"Authorization": "Bearer " + self.keys[name]}

    def metadata(self, name):
        """The same for a gRPC client."""
        return [("authorization", "Bearer " + self.keys[name])]
