// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.text.OutputFormat;
import io.nereid.base.ServingException;
import io.nereid.repository.problem.Problem;
import java.io.PrintWriter;
import org.jspecify.annotations.Nullable;

/** What a validation finds: lines as they come, or one document at the end. Confined to one thread. */
final class ValidationReport {
    private final OutputFormat format;
    private final PrintWriter out;
    private final ObjectNode document = JsonNodeFactory.instance.objectNode();
    private final ArrayNode findings;
    private boolean valid = true;

    ValidationReport(OutputFormat format, PrintWriter out) {
        this.format = format;
        this.out = out;
        document.put("valid", true);
        findings = document.putArray("findings");
    }

    /** Whether there was not one error. */
    boolean valid() {
        return valid;
    }

    /** Something that was checked and is right. */
    void ok(String text) {
        add("ok", text, null, "ok: " + text);
    }

    void warning(String text, String remedy) {
        add("warning", text, remedy, "warning: " + text + "\n  " + remedy);
    }

    void error(ServingException error) {
        valid = false;
        String remedy = error.remedy();
        add(
                "error",
                String.valueOf(error.getMessage()),
                remedy,
                "error: " + error.getMessage() + (remedy == null ? "" : "\n  " + remedy));
    }

    void problem(Problem problem) {
        valid &= !problem.isError();
        String level = problem.isError() ? "error" : "warning";
        ObjectNode each = add(level, problem.message(), problem.remedy(), level + ": " + problem);
        each.put("file", problem.file().toString());
        if (problem.line() > 0) {
            each.put("line", problem.line()).put("column", problem.column());
        }
    }

    /** A last line for people; documents do not have it. */
    void summary(String text) {
        if (!format.isDocument()) {
            out.println(text);
        }
    }

    private ObjectNode add(String level, String text, @Nullable String remedy, String line) {
        if (!format.isDocument()) {
            out.println(line);
        }
        ObjectNode each = findings.addObject().put("level", level).put("text", text);
        if (remedy != null) {
            each.put("remedy", remedy);
        }
        return each;
    }

    /** Prints the document, if it is one. */
    void end() {
        if (format.isDocument()) {
            document.put("valid", valid);
            format.print(document, out);
        }
        out.flush();
    }
}
