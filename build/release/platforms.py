# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The platforms that distributions are made for, and where libraries keep the native code of each."""

import fnmatch
import os


class Platform:
    """
    names: how each library calls the platform; debian: the name of its packages; oci: that of images; glibc: the oldest C library that
    the natives and the runtime run on, which is in the tags of wheels.
    """

    def __init__(self, name, debian, oci, names, machine, glibc):
        self.name = name
        self.debian = debian
        self.oci = oci
        self.names = names
        self.machine = machine
        self.glibc = glibc

    def natives(self, jar):
        """The patterns of the native libraries in a jar for this platform, or None when the jar has no native code."""
        for prefix, pattern in LIBRARIES.items():
            if os.path.basename(jar).startswith(prefix):
                return pattern.format(**self.names)
        return None


# The folder of native code of each library, by the beginning of the jar's name.
LIBRARIES = {
    "onnxruntime-": "ai/onnxruntime/native/{onnxruntime}/*.so",
    "tokenizers-": "native/lib/{tokenizers}/cpu/*.so",
    "jna-": "com/sun/jna/{jna}/*.so",
    "netty-transport-native-epoll-": "META-INF/native/libnetty_transport_native_epoll_{netty}.so",
}

# What marks an entry of these jars as native code, of any platform. The folders of jna have code in Java as well.
NATIVE = ("ai/onnxruntime/native/*", "native/lib/*", "com/sun/jna/*/*jnidispatch*", "META-INF/native/*.so")

PLATFORMS = {
    "linux-x64": Platform(
        "linux-x64",
        "amd64",
        "amd64",
        {"onnxruntime": "linux-x64", "tokenizers": "linux-x86_64", "jna": "linux-x86-64", "netty": "x86_64"},
        "x86_64",
        (2, 28),
    ),
    "linux-aarch64": Platform(
        "linux-aarch64",
        "arm64",
        "arm64",
        {"onnxruntime": "linux-aarch64", "tokenizers": "linux-aarch64", "jna": "linux-aarch64", "netty": "aarch_64"},
        "aarch64",
        # That of the OpenJDK in Debian 12.
        (2, 34),
    ),
}


def native(name):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in NATIVE)
