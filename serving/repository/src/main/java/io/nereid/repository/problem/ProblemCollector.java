// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.problem;

import io.nereid.base.ServingException;
import io.nereid.repository.problem.Problem.Severity;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** Collects the problems of one model, up to a limit. Confined to the thread that reads the model. */
public final class ProblemCollector {
    private static final int LIMIT = 100;
    private static final int QUOTED = 60;

    private final List<Problem> list = new ArrayList<>();
    private boolean errors;

    public void error(Path file, SourcePosition at, String message, @Nullable String remedy) {
        errors = true;
        add(new Problem(Severity.ERROR, file, at.line(), at.column(), message, remedy));
    }

    public void error(Path file, String message, @Nullable String remedy) {
        error(file, SourcePosition.NONE, message, remedy);
    }

    public void warning(Path file, SourcePosition at, String message, @Nullable String remedy) {
        add(new Problem(Severity.WARNING, file, at.line(), at.column(), message, remedy));
    }

    void addAll(Iterable<Problem> problems) {
        for (Problem p : problems) {
            errors |= p.isError();
            add(p);
        }
    }

    private void add(Problem problem) {
        if (list.size() < LIMIT) {
            list.add(problem);
        } else if (list.size() == LIMIT) {
            list.add(new Problem(
                    Severity.ERROR, problem.file(), 0, 0, "further problems are not shown", "fix these first"));
        }
    }

    /** Whether the limit is reached, so that the reader can stop. */
    public boolean full() {
        return list.size() > LIMIT;
    }

    public boolean hasErrors() {
        return errors;
    }

    public List<Problem> list() {
        return List.copyOf(list);
    }

    /** Combines all errors to one exception. */
    public static ServingException refusal(List<Problem> problems) {
        StringBuilder text = new StringBuilder();
        String remedy = null;
        int errors = 0;
        for (Problem p : problems) {
            if (p.isError()) {
                errors++;
                remedy = p.remedy();
            }
        }
        for (Problem p : problems) {
            if (p.isError()) {
                text.append(text.length() == 0 ? "" : "; ");
                text.append(
                        errors == 1 ? new Problem(p.severity(), p.file(), p.line(), p.column(), p.message(), null) : p);
            }
        }
        return ServingException.invalidArgument(text.toString(), errors == 1 ? remedy : null);
    }

    /** Quotes untrusted text for messages: shortened, and without control characters. */
    public static String quote(String text) {
        StringBuilder b = new StringBuilder("'");
        for (int i = 0; i < text.length() && i < QUOTED; i++) {
            char c = text.charAt(i);
            if (c < ' ' || c == 0x7f || Character.isSurrogate(c)) {
                b.append(String.format(Locale.ROOT, "\\u%04x", (int) c));
            } else {
                b.append(c);
            }
        }
        return b.append(text.length() > QUOTED ? "…'" : "'").toString();
    }
}
