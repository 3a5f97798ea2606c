// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tracing;

import java.util.Map;

/**
 * How requests are traced at the start. Immutable.
 *
 * @param mode where traces go
 * @param settings of both modes, under Triton's names: {@code level} (OFF, TIMESTAMPS, TENSORS; several separated by
 *     commas), {@code rate}, {@code count}
 * @param modeSettings of {@link Mode#TRITON}: {@code file}, {@code log-frequency}; of {@link Mode#OPENTELEMETRY}:
 *     {@code url}, {@code bsp_max_queue_size}, {@code bsp_schedule_delay}, {@code bsp_max_export_batch_size}
 * @param resource attributes of the service, for OpenTelemetry
 */
public record TraceOptions(
        Mode mode, Map<String, String> settings, Map<String, String> modeSettings, Map<String, String> resource) {
    /** Nothing is traced until a client asks for it. */
    public static final TraceOptions OFF = new TraceOptions(Mode.TRITON, Map.of(), Map.of(), Map.of());

    /** Where traces go. */
    public enum Mode {
        /** Into JSON files, in the form of Triton's traces. */
        TRITON,
        /** To an OpenTelemetry collector over OTLP. */
        OPENTELEMETRY
    }
}
