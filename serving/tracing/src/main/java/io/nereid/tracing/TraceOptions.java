// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tracing;

import java.util.Map;

/**
 * Initial settings of tracing (Triton: {@code --trace-config}). Immutable.
 *
 * @param mode the destination of traces
 * @param settings of both modes, under Triton's names: {@code level} (OFF, TIMESTAMPS, TENSORS; several separated by
 *     commas), {@code rate}, {@code count}
 * @param modeSettings of {@link Mode#TRITON}: {@code file}, {@code log-frequency}; of {@link Mode#OPENTELEMETRY}:
 *     {@code url}, {@code bsp_max_queue_size}, {@code bsp_schedule_delay}, {@code bsp_max_export_batch_size}
 * @param resource attributes of the service, for OpenTelemetry
 */
public record TraceOptions(
        Mode mode, Map<String, String> settings, Map<String, String> modeSettings, Map<String, String> resource) {
    /** Tracing is off until a client changes the settings. */
    public static final TraceOptions OFF = new TraceOptions(Mode.TRITON, Map.of(), Map.of(), Map.of());

    /** The destination of traces. */
    public enum Mode {
        /** JSON files in Triton's format. */
        TRITON,
        /** An OpenTelemetry collector, over OTLP. */
        OPENTELEMETRY
    }
}
