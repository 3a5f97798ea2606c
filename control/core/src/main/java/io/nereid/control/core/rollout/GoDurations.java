// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.rollout;

import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Parses durations in Go's syntax, such as {@code 1h15m30.5s}. Stateless. */
final class GoDurations {
    private static final Pattern PART = Pattern.compile("([0-9]{1,12}(?:\\.[0-9]{0,9})?)(ms|s|m|h)");

    private GoDurations() {}

    /** The duration; null when the text is not one. */
    static @Nullable Duration parse(String text) {
        Matcher matcher = PART.matcher(text);
        int at = 0;
        double millis = 0;
        while (matcher.find() && matcher.start() == at) {
            millis += Double.parseDouble(matcher.group(1))
                    * switch (matcher.group(2)) {
                        case "ms" -> 1;
                        case "s" -> 1_000;
                        case "m" -> 60_000;
                        default -> 3_600_000;
                    };
            at = matcher.end();
        }
        return at == 0 || at != text.length() || millis > 1e15 ? null : Duration.ofMillis((long) millis);
    }
}
