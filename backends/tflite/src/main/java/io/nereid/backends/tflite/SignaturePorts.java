// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import java.util.List;

/**
 * What one signature takes and gives. Immutable.
 *
 * @param key its name in the file; empty when the file has none
 * @param inputs in the file's order
 * @param outputs likewise
 */
record SignaturePorts(String key, List<Port> inputs, List<Port> outputs) {}
