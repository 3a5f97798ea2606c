// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.write;

import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Joins the warnings of an admission with those of a plan, which know more about some fields. Stateless. */
final class WriteWarnings {
    /** What a sentence is about: all before its verb. */
    private static final Pattern SUBJECT = Pattern.compile("^(.*?)( has no effect| is not |: | names no )");

    private static final Pattern INDEX = Pattern.compile("\\[[^\\]]*\\]");

    private WriteWarnings() {}

    /** Adds the sentences about what no warning is about yet. */
    static void add(List<String> warnings, List<String> more) {
        List<String> known = warnings.stream().map(WriteWarnings::subject).toList();
        for (String one : more) {
            String subject = subject(one);
            if (known.stream().noneMatch(subject::equals)) {
                warnings.add(one);
            }
        }
    }

    /** The field or annotation, without indexes, which may be numbers or names. */
    private static String subject(String warning) {
        Matcher found = SUBJECT.matcher(warning);
        String subject = found.find() ? found.group(1) : warning;
        if (subject.endsWith(".env") && found.end() < warning.length()) {
            subject = warning.replaceFirst(" (has|is) .*", "");
        }
        return INDEX.matcher(subject).replaceAll("[]");
    }
}
