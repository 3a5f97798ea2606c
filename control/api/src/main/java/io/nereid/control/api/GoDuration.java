// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import java.math.BigDecimal;
import java.time.Duration;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Parses and formats durations in Go's syntax: {@code 1m9s82ms}, {@code 42.5s}, {@code -3h}, {@code 0}. Stateless. */
public final class GoDuration {
    private static final Pattern WHOLE = Pattern.compile("[+-]?(?:(?:\\d+\\.?\\d*|\\.\\d+)(?:ns|us|µs|μs|ms|s|m|h))+");
    private static final Pattern PART = Pattern.compile("(\\d+\\.?\\d*|\\.\\d+)(ns|us|µs|μs|ms|s|m|h)");
    private static final BigDecimal LARGEST = BigDecimal.valueOf(Long.MAX_VALUE);
    private static final Map<String, Long> NANOS = Map.of(
            "ns",
            1L,
            "us",
            1_000L,
            "µs",
            1_000L,
            "μs",
            1_000L,
            "ms",
            1_000_000L,
            "s",
            1_000_000_000L,
            "m",
            60_000_000_000L,
            "h",
            3_600_000_000_000L);

    private GoDuration() {}

    /** Parses a duration; returns null when the text is not one. */
    public static @Nullable Duration parse(String text) {
        if (text.equals("0") || text.equals("+0") || text.equals("-0")) {
            return Duration.ZERO;
        }
        if (text.length() > 64 || !WHOLE.matcher(text).matches()) {
            return null;
        }
        BigDecimal sum = BigDecimal.ZERO;
        for (Matcher m = PART.matcher(text); m.find(); ) {
            Long unit = NANOS.get(m.group(2));
            if (unit == null) {
                return null;
            }
            sum = sum.add(new BigDecimal(m.group(1)).multiply(BigDecimal.valueOf(unit)));
        }
        if (sum.compareTo(LARGEST) > 0) {
            return null;
        }
        Duration duration = Duration.ofNanos(sum.longValue());
        return text.charAt(0) == '-' ? duration.negated() : duration;
    }

    /** Parses a duration, or a whole number of seconds; returns null when the text is neither. */
    public static @Nullable Duration ofSecondsOrText(String text) {
        return text.matches("-?[0-9]{1,12}") ? Duration.ofSeconds(Long.parseLong(text)) : parse(text);
    }

    /** Formats a duration in whole seconds: {@code 1h0m0s}, {@code 6s}. */
    public static String format(Duration duration) {
        long seconds = duration.toSeconds();
        StringBuilder text = new StringBuilder();
        if (seconds >= 3600) {
            text.append(seconds / 3600).append('h');
        }
        if (seconds >= 60) {
            text.append(seconds / 60 % 60).append('m');
        }
        return text.append(seconds % 60).append('s').toString();
    }
}
