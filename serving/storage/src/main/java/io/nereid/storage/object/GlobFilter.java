// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.object;

import java.util.List;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/** Selects paths by allow and ignore glob patterns. Immutable. */
public final class GlobFilter {
    static final GlobFilter ALL = new GlobFilter(List.of(), List.of());

    private final List<String> allow;
    private final List<String> ignore;
    private final List<Pattern> allowed;
    private final List<Pattern> ignored;

    public GlobFilter(List<String> allow, List<String> ignore) {
        this.allow = List.copyOf(allow);
        this.ignore = List.copyOf(ignore);
        this.allowed = allow.stream().map(GlobFilter::compile).toList();
        this.ignored = ignore.stream().map(GlobFilter::compile).toList();
    }

    public boolean isAll() {
        return allow.isEmpty() && ignore.isEmpty();
    }

    public boolean wants(String path) {
        return (allowed.isEmpty()
                        || allowed.stream().anyMatch(p -> p.matcher(path).matches()))
                && ignored.stream().noneMatch(p -> p.matcher(path).matches());
    }

    /** Compiles a pattern of Python's fnmatch; one that ends with a slash matches everything below. */
    private static Pattern compile(String glob) {
        String text = glob.endsWith("/") ? glob + "*" : glob;
        StringBuilder regex = new StringBuilder();
        int i = 0;
        while (i < text.length()) {
            char c = text.charAt(i++);
            if (c == '*') {
                regex.append(".*");
            } else if (c == '?') {
                regex.append('.');
            } else if (c == '[') {
                int from = i < text.length() && (text.charAt(i) == '!') ? i + 1 : i;
                int end = text.indexOf(']', from + 1);
                if (end < 0) {
                    regex.append("\\[");
                } else {
                    String set = text.substring(from, end)
                            .replace("\\", "\\\\")
                            .replace("[", "\\[")
                            .replace("&&", "&\\&")
                            .replace("^", "\\^");
                    regex.append(from > i ? "[^" : "[").append(set).append(']');
                    i = end + 1;
                }
            } else {
                regex.append(Pattern.quote(String.valueOf(c)));
            }
        }
        try {
            return Pattern.compile(regex.toString(), Pattern.DOTALL);
        } catch (PatternSyntaxException e) {
            return Pattern.compile(Pattern.quote(glob));
        }
    }

    @Override
    public String toString() {
        return "allow=" + allow + " ignore=" + ignore;
    }
}
