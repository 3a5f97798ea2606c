// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.device;

import io.nereid.base.ServingException;
import io.nereid.device.DeviceLimits;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** The options of {@code tritonserver} about GPUs. Set by picocli, then only read. */
@SuppressWarnings("NullAway.Init") // options are set by picocli
public final class DeviceFlags {
    private static final Pattern CAPABILITY = Pattern.compile("([0-9]{1,3})(?:\\.([0-9]{1,3}))?");
    private static final int MILLIS = 2000;

    @Option(
            names = "--allow-gpu-metrics",
            arity = "0..1",
            fallbackValue = "true",
            paramLabel = "true|false",
            description = "Export the metrics of GPUs (default: true). GPUs need the plugin cuda.")
    @Nullable Boolean metrics;

    @Option(
            names = "--metrics-interval-ms",
            paramLabel = "N",
            description = "How old the figures of GPUs in a page of metrics may be (default: 2000). The other metrics"
                    + " are read when they are scraped.")
    @Nullable Long intervalMillis;

    @Option(
            names = "--pinned-memory-pool-byte-size",
            paramLabel = "BYTES",
            description = "The pinned memory of the process that GPUs copy from (default: 268435456).")
    @Nullable Long pinned;

    @Option(
            names = "--cuda-memory-pool-byte-size",
            paramLabel = "GPU:BYTES",
            description = "The memory of a GPU that the server itself may take (default: 67108864); may be repeated.")
    List<String> pools = new ArrayList<>();

    @Option(
            names = "--model-load-gpu-limit",
            paramLabel = "GPU:FRACTION",
            description = "Load no model on a GPU of whose memory more than this fraction is used; may be repeated.")
    List<String> loads = new ArrayList<>();

    @Option(
            names = "--min-supported-compute-capability",
            paramLabel = "MAJOR.MINOR",
            description = "Use only GPUs of at least this compute capability (default: 6.0).")
    @Nullable String capability;

    /**
     * Checks the values, whether there are GPUs or not.
     *
     * @throws ServingException INVALID_ARGUMENT for a value that an option does not take
     */
    public void check() {
        if (intervalMillis != null && intervalMillis < 1) {
            throw ServingException.invalidArgument(
                    "--metrics-interval-ms " + intervalMillis + " is not an interval (expected: at least 1)");
        }
        if (pinned != null && pinned < 0) {
            throw ServingException.invalidArgument(
                    "--pinned-memory-pool-byte-size " + pinned + " is negative (expected: bytes, 0 for none)");
        }
        Object unused = List.of(pools(), fractions(), capability());
    }

    private Map<Integer, Long> pools() {
        return each("--cuda-memory-pool-byte-size", "GPU:BYTES, such as 0:67108864", pools, text -> {
            long bytes = Long.parseLong(text);
            return bytes < 0 ? null : bytes;
        });
    }

    private Map<Integer, Double> fractions() {
        return each(
                "--model-load-gpu-limit", "GPU:FRACTION with a fraction from 0 to 1, such as 0:0.8", loads, text -> {
                    double fraction = Double.parseDouble(text);
                    return fraction >= 0 && fraction <= 1 ? fraction : null;
                });
    }

    private static <T> Map<Integer, T> each(
            String option, String expected, List<String> values, Function<String, @Nullable T> parse) {
        Map<Integer, T> byDevice = new LinkedHashMap<>();
        for (String value : values) {
            int colon = value.indexOf(':');
            T parsed = null;
            int device = -1;
            if (colon > 0) {
                try {
                    device = Integer.parseInt(value.substring(0, colon));
                    parsed = parse.apply(value.substring(colon + 1));
                } catch (NumberFormatException e) {
                    parsed = null;
                }
            }
            if (parsed == null || device < 0) {
                throw ServingException.invalidArgument(
                        option + " '" + value + "' is not valid (expected: " + expected + ")");
            }
            byDevice.put(device, parsed);
        }
        return byDevice;
    }

    private int[] capability() {
        if (capability == null) {
            return new int[] {DeviceLimits.DEFAULT.major(), DeviceLimits.DEFAULT.minor()};
        }
        Matcher number = CAPABILITY.matcher(capability);
        if (!number.matches()) {
            throw ServingException.invalidArgument("--min-supported-compute-capability '" + capability
                    + "' is not valid (expected: MAJOR.MINOR, such as 7.5)");
        }
        return new int[] {
            Integer.parseInt(number.group(1)), number.group(2) == null ? 0 : Integer.parseInt(number.group(2))
        };
    }

    /** Returns the limits of the options. */
    DeviceLimits limits() {
        int[] least = capability();
        return new DeviceLimits(
                pinned == null ? DeviceLimits.PINNED_BYTES : pinned, pools(), fractions(), least[0], least[1]);
    }

    /** How old figures in a page of metrics may be. */
    Duration interval() {
        return Duration.ofMillis(intervalMillis == null ? MILLIS : intervalMillis);
    }

    /** Whether the metrics of GPUs are exported. */
    boolean exportsMetrics() {
        return !Boolean.FALSE.equals(metrics);
    }

    /** The given options that have an effect with a GPU only, as they were given. */
    List<String> given() {
        List<String> names = new ArrayList<>();
        if (Boolean.TRUE.equals(metrics)) {
            names.add("--allow-gpu-metrics=true");
        }
        if (pinned != null) {
            names.add("--pinned-memory-pool-byte-size");
        }
        if (!pools.isEmpty()) {
            names.add("--cuda-memory-pool-byte-size");
        }
        if (!loads.isEmpty()) {
            names.add("--model-load-gpu-limit");
        }
        if (capability != null) {
            names.add("--min-supported-compute-capability");
        }
        if (intervalMillis != null) {
            names.add("--metrics-interval-ms");
        }
        return names;
    }
}
