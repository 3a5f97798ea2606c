# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures Nereid beside other model servers; see README.md."""
