// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.request;

/** A sink that takes some tensors of its responses in the memory of a GPU. Thread-safe. */
public interface DeviceOutputs {
    /**
     * Whether a reader of an output runs on a GPU. Called on a thread of the GPU, before the response is made.
     *
     * @param output the name of the output
     * @param device the ordinal of the GPU
     */
    boolean keepsOnDevice(String output, int device);
}
