// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Parses and formats sizes and durations with units, as configuration files and flags write them. Immutable. */
public final class Units {
    private static final Pattern NUMBER_UNIT = Pattern.compile("([0-9]+)\\s*([A-Za-z]*)");
    private static final Map<String, Long> BYTES = Map.of(
            "",
            1L,
            "B",
            1L,
            "KB",
            1_000L,
            "MB",
            1_000_000L,
            "GB",
            1_000_000_000L,
            "KIB",
            1L << 10,
            "MIB",
            1L << 20,
            "GIB",
            1L << 30);
    private static final Map<String, Long> NANOS = Map.of(
            "ns",
            1L,
            "us",
            1_000L,
            "ms",
            1_000_000L,
            "s",
            1_000_000_000L,
            "m",
            60_000_000_000L,
            "h",
            3_600_000_000_000L);

    private Units() {}

    /** Parses {@code 64MiB}, {@code 10MB}, {@code 512}. */
    public static long bytes(String text) {
        Matcher m = NUMBER_UNIT.matcher(text.strip());
        Long factor = m.matches() ? BYTES.get(m.group(2).toUpperCase(Locale.ROOT)) : null;
        if (factor == null) {
            throw ServingException.invalidArgument("'" + text
                    + "' is not a size (expected a number and B, KB, MB, GB, KiB, MiB or GiB, such as 64MiB)");
        }
        return multiply(text, m.group(1), factor);
    }

    /** Parses {@code 5ms}, {@code 30s}, {@code 2m}. A number without a unit is rejected as ambiguous. */
    public static Duration duration(String text) {
        Matcher m = NUMBER_UNIT.matcher(text.strip());
        Long factor = m.matches() ? NANOS.get(m.group(2).toLowerCase(Locale.ROOT)) : null;
        if (factor == null) {
            throw ServingException.invalidArgument(
                    "'" + text + "' is not a duration (expected a number and ns, us, ms, s, m or h, such as 5ms)");
        }
        return Duration.ofNanos(multiply(text, m.group(1), factor));
    }

    private static long multiply(String text, String number, long factor) {
        try {
            return Math.multiplyExact(Long.parseLong(number), factor);
        } catch (ArithmeticException | NumberFormatException e) {
            throw ServingException.invalidArgument("'" + text + "' is too large (expected less than 2^63)");
        }
    }

    /** Formats a size for display: {@code 23.0 MB}. */
    public static String formatBytes(long bytes) {
        if (bytes < 1_000) {
            return bytes + " B";
        }
        String[] units = {"kB", "MB", "GB", "TB"};
        double value = bytes / 1_000.0;
        int i = 0;
        while (value >= 999.95 && i < units.length - 1) {
            value /= 1_000;
            i++;
        }
        return String.format(Locale.ROOT, "%.1f %s", value, units[i]);
    }

    /** Formats a duration for display: {@code 12 ms}, {@code 1.4 s}. */
    public static String formatNanos(long nanos) {
        if (nanos < 1_000_000L) {
            return nanos / 1_000L + " us";
        }
        return nanos < 1_000_000_000L ? nanos / 1_000_000L + " ms" : String.format(Locale.ROOT, "%.1f s", nanos / 1e9);
    }
}
