// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import io.nereid.device.Devices;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.management.ModelControl;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The server's settings and interfaces that every backend receives when it loads a model. Immutable.
 *
 * @param cores number of processors that all runs together may use
 * @param scratch a directory of this process for temporary files such as extracted native libraries
 * @param settings this backend's server-wide settings ({@code --backend-config})
 * @param autoComplete whether the backend may fill in inputs, outputs, batch size and scheduler where the
 *     configuration leaves them out; when false it only checks them
 * @param engine the server's inference API, for models that call other models; null outside a server
 * @param control the server's model control API, for models that load others; null outside a server
 * @param backends all backends, for a backend that delegates models to another one
 * @param settingsByBackend the server-wide settings of every backend by its name, likewise
 * @param spareMemory whether a model may later take more memory than its load needed in order to be faster; false where the
 *     memory of models has a limit
 * @param devices the GPUs of the server with the account of their memory, by which backends allocate and copy; null when
 *     the server uses none
 */
public record BackendContext(
        int cores,
        Path scratch,
        Map<String, String> settings,
        boolean autoComplete,
        @Nullable InferenceEngine engine,
        @Nullable ModelControl control,
        List<Backend> backends,
        Map<String, Map<String, String>> settingsByBackend,
        boolean spareMemory,
        @Nullable Devices devices) {
    /** This context with other settings of the backend. */
    public BackendContext withSettings(Map<String, String> other) {
        return new BackendContext(
                cores,
                scratch,
                other,
                autoComplete,
                engine,
                control,
                backends,
                settingsByBackend,
                spareMemory,
                devices);
    }

    /** This context with other permission to take memory. */
    public BackendContext withSpareMemory(boolean allowed) {
        return new BackendContext(
                cores, scratch, settings, autoComplete, engine, control, backends, settingsByBackend, allowed, devices);
    }

    /** This context with the GPUs of the server. */
    public BackendContext withDevices(@Nullable Devices used) {
        return new BackendContext(
                cores,
                scratch,
                settings,
                autoComplete,
                engine,
                control,
                backends,
                settingsByBackend,
                spareMemory,
                used);
    }

    /** A context without GPUs. */
    public BackendContext(
            int cores,
            Path scratch,
            Map<String, String> settings,
            boolean autoComplete,
            @Nullable InferenceEngine engine,
            @Nullable ModelControl control,
            List<Backend> backends,
            Map<String, Map<String, String>> settingsByBackend,
            boolean spareMemory) {
        this(cores, scratch, settings, autoComplete, engine, control, backends, settingsByBackend, spareMemory, null);
    }

    /** A context in which models keep to the memory of their load. */
    public BackendContext(
            int cores,
            Path scratch,
            Map<String, String> settings,
            boolean autoComplete,
            @Nullable InferenceEngine engine,
            @Nullable ModelControl control,
            List<Backend> backends,
            Map<String, Map<String, String>> settingsByBackend) {
        this(cores, scratch, settings, autoComplete, engine, control, backends, settingsByBackend, false);
    }

    /** A context without the settings of other backends. */
    public BackendContext(
            int cores,
            Path scratch,
            Map<String, String> settings,
            boolean autoComplete,
            @Nullable InferenceEngine engine,
            @Nullable ModelControl control,
            List<Backend> backends) {
        this(cores, scratch, settings, autoComplete, engine, control, backends, Map.of());
    }

    /** A context without other backends. */
    public BackendContext(
            int cores,
            Path scratch,
            Map<String, String> settings,
            boolean autoComplete,
            @Nullable InferenceEngine engine,
            @Nullable ModelControl control) {
        this(cores, scratch, settings, autoComplete, engine, control, List.of());
    }

    /** A context outside a server. */
    public BackendContext(int cores, Path scratch, Map<String, String> settings, boolean autoComplete) {
        this(cores, scratch, settings, autoComplete, null, null);
    }

    /** A context outside a server, with automatic completion of configurations. */
    public BackendContext(int cores, Path scratch, Map<String, String> settings) {
        this(cores, scratch, settings, true);
    }
}
