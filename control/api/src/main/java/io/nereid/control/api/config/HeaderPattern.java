// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.config;

import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import org.jspecify.annotations.Nullable;

/**
 * A pattern for the names of request headers, as KServe's router has them in {@code PROPAGATE_HEADERS}: a regular expression
 * of Go, which matches anywhere in a name of the form {@code X-Request-Id} unless it has anchors. Immutable.
 *
 * <pre>{@code
 * HeaderPattern pattern = HeaderPattern.of("^X-Team|Request");
 * boolean propagated = pattern != null && pattern.matches("x-request-id");
 * }</pre>
 */
public final class HeaderPattern {
    /** A class of characters by name, which Java writes in another way than Go. */
    private static final Pattern NAMED_CLASS = Pattern.compile(
            "\\[:(\\^?)(alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit):]");

    private final Pattern pattern;

    private HeaderPattern(Pattern pattern) {
        this.pattern = pattern;
    }

    /** The pattern of an expression; null if it is not a regular expression. */
    public static @Nullable HeaderPattern of(String expression) {
        Matcher names = NAMED_CLASS.matcher(expression);
        StringBuilder java = new StringBuilder();
        while (names.find()) {
            String name = names.group(2);
            String property = name.equals("xdigit")
                    ? "XDigit"
                    : name.equals("ascii")
                            ? "ASCII"
                            : name.substring(0, 1).toUpperCase(Locale.ROOT) + name.substring(1);
            names.appendReplacement(
                    java, Matcher.quoteReplacement((names.group(1).isEmpty() ? "\\p{" : "\\P{") + property + "}"));
        }
        names.appendTail(java);
        try {
            return new HeaderPattern(Pattern.compile(java.toString().replace("(?P<", "(?<")));
        } catch (PatternSyntaxException e) {
            return null;
        }
    }

    /**
     * Whether a header has a name that the pattern is for. A pattern in lower case may be the whole name as well.
     *
     * @param name its name in lower case
     */
    public boolean matches(String name) {
        return pattern.matcher(canonical(name)).find() || pattern.matcher(name).matches();
    }

    /** The name in Go's canonical form, {@code X-Request-Id}, which KServe's patterns are written for. */
    private static String canonical(String name) {
        StringBuilder b = new StringBuilder(name.length());
        for (String word : name.split("-", -1)) {
            if (!b.isEmpty()) {
                b.append('-');
            }
            b.append(word.isEmpty() ? "" : word.substring(0, 1).toUpperCase(Locale.ROOT) + word.substring(1));
        }
        return b.toString();
    }
}
