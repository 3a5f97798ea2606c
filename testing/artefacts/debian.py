# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Installs, uses, upgrades, removes and purges the Debian package in a folder, and checks its systemd unit."""

import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import newcomer

# The exposure that systemd-analyze may find, from 0 to 10; a unit without any protection has 9.6.
MOST_EXPOSED = 2.5


def run(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)


def check_debian(release, work, tools, root, check, skip, answers, free_port):
    [package] = glob.glob(os.path.join(release, "nereid_*.deb"))
    check(True, f"{os.path.basename(package)}: {os.path.getsize(package) / 1e6:.1f} MB")
    if shutil.which("dpkg") is None or os.geteuid() != 0:
        skip("the Debian package: dpkg is not on the PATH, or this is not root")
        newcomer.skipped("apt", "dpkg is not on the PATH, or this is not root")
        return
    system = os.path.join(work, "debian")
    for folder in ("info", "updates", "triggers"):
        os.makedirs(os.path.join(system, "var/lib/dpkg", folder))
    for file in ("status", "available"):
        open(os.path.join(system, "var/lib/dpkg", file), "wb").close()

    def dpkg(*arguments):
        return run(["dpkg", f"--root={system}", "--force-depends", "--force-script-chrootless", "--force-confold", *arguments])

    begun = time.monotonic()
    installed = dpkg("--install", package)
    installation = time.monotonic() - begun
    check(installed.returncode == 0, f"dpkg installs it{'' if installed.returncode == 0 else ': ' + installed.stdout}")
    verified = dpkg("--verify", "nereid")
    check(verified.returncode == 0 and not verified.stdout, f"its files are as their checksums say {verified.stdout}")
    program = os.path.join(system, "usr/bin/nereid")
    configuration = os.path.join(system, "etc/nereid/nereid.yaml")
    for file in (program, configuration, "usr/share/man/man1/nereid.1.gz", "usr/share/bash-completion/completions/nereid", "srv/nereid/models"):
        check(os.path.exists(os.path.join(system, file)), f"{os.path.relpath(file, system) if file.startswith('/') else file} is there")

    env = {"PATH": tools, "HOME": os.path.join(work, "absent")}
    shared = run([program, "version"], env={**env, "NEREID_JAVA_OPTS": "-Xlog:class+load:stdout"})
    loaded = re.search(r"io\.nereid\.app\.Main source: (.*)", shared.stdout)
    check(loaded is not None and "shared objects file" in loaded.group(1), f"its classes come from the archive: {loaded and loaded.group(1)}")

    port = free_port()
    with open(configuration, encoding="utf-8") as file:
        text = file.read()
    changed = text.replace("/srv/nereid/models", os.path.join(root, "examples/models")).replace("port: 8080", f"port: {port}")
    with open(configuration, "w", encoding="utf-8") as file:
        file.write(changed)
    started = serve(system, work, env, port, check, answers)
    if started is not None:
        # As apt does in the system itself: the package is installed and its service starts.
        commands = ["sudo apt install ./nereid_*_amd64.deb", "sudo cp -r models/. /srv/nereid/models"]
        newcomer.ran("apt", commands, installation + started[0], started[1])
    upgrade(package, work, dpkg, configuration, changed, program, env, check)
    removed = dpkg("--remove", "nereid")
    check(removed.returncode == 0 and not os.path.lexists(program) and os.path.exists(configuration), "removed, it leaves the configuration")
    check(not glob.glob(os.path.join(system, "usr/lib/nereid*")), "and nothing of the program")
    purged = dpkg("--purge", "nereid")
    check(purged.returncode == 0 and not os.path.exists(os.path.join(system, "etc/nereid")), "purged, it leaves no configuration")
    unit(root, work, check, skip)


def serve(system, work, env, port, check, answers):
    """Starts what the unit starts, as systemd does, with a socket for its notifications. Returns the seconds until it answers, and the answer."""
    answer = None
    with open(os.path.join(system, "usr/lib/systemd/system/nereid.service"), encoding="utf-8") as file:
        command = re.search(r"^ExecStart=(.*)$", file.read(), re.M).group(1).split()
    command = [os.path.join(system, word[1:]) if word.startswith(("/usr/", "/etc/")) else word for word in command]
    address = os.path.join(work, "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(120)
        begun = time.monotonic()
        process = subprocess.Popen(
            command, env={**env, "NOTIFY_SOCKET": address}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            said = manager.recv(4096)
            answer = (time.monotonic() - begun, newcomer.ask(port))
            check(said == b"READY=1" and answers(port), f"the service says {said.decode()} when its models answer")
            process.send_signal(signal.SIGHUP)
            process.send_signal(signal.SIGTERM)
            said = manager.recv(4096)
            output = process.communicate(timeout=60)[0]
            check(said == b"STOPPING=1" and process.returncode == 0, f"SIGTERM ends it with {process.returncode} after {said.decode()}")
        except TimeoutError:
            process.kill()
            output = process.communicate()[0]
            check(False, f"the service does not notify its manager:\n{output[-2000:]}")
    return answer


def upgrade(package, work, dpkg, configuration, changed, program, env, check):
    """Installs the same package with a higher version, which must keep what the administrator has changed."""
    tree = os.path.join(work, "newer")
    run(["dpkg-deb", "--raw-extract", package, tree])
    control = os.path.join(tree, "DEBIAN/control")
    with open(control, encoding="utf-8") as file:
        text = file.read()
    with open(control, "w", encoding="utf-8") as file:
        file.write(re.sub(r"^Version: .*$", "Version: 99.0-1", text, flags=re.M))
    newer = os.path.join(work, "newer.deb")
    built = run(["dpkg-deb", "-Zgzip", "-z1", "--root-owner-group", "--build", tree, newer])
    shutil.rmtree(tree)
    upgraded = dpkg("--install", newer)
    with open(configuration, encoding="utf-8") as file:
        kept = file.read() == changed
    fine = built.returncode == 0 and upgraded.returncode == 0 and kept
    check(fine, f"an upgrade keeps the configuration{'' if fine else ': ' + built.stdout + upgraded.stdout}")
    check(run([program, "version"], env=env).returncode == 0, "and the program runs")
    os.remove(newer)


def unit(root, work, check, skip):
    if shutil.which("systemd-analyze") is None:
        skip("the systemd unit: systemd-analyze is not on the PATH")
        return
    copy = os.path.join(work, "nereid.service")
    with open(os.path.join(root, "deploy/debian/nereid.service"), encoding="utf-8") as file:
        # The program is not installed here.
        text = file.read().replace("ExecStart=/usr/bin/nereid", "ExecStart=/bin/true")
    with open(copy, "w", encoding="utf-8") as file:
        file.write(text)
    verified = run(["systemd-analyze", "verify", "--man=no", copy])
    ours = [line for line in verified.stdout.splitlines() if "nereid" in line]
    check(not ours, f"systemd-analyze verify finds nothing {ours or ''}")
    security = run(["systemd-analyze", "security", "--offline=true", "--no-pager", copy])
    level = re.search(r"Overall exposure level for nereid\.service: ([0-9.]+)", security.stdout)
    check(
        level is not None and float(level.group(1)) <= MOST_EXPOSED,
        f"systemd-analyze security: an exposure of {level.group(1) if level else security.stdout}, at most {MOST_EXPOSED}",
    )
