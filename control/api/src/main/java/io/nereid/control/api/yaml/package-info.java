// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Manifests: reads files of resources, YAML 1.1 as Kubernetes reads it, or JSON. */
@NullMarked
package io.nereid.control.api.yaml;

import org.jspecify.annotations.NullMarked;
