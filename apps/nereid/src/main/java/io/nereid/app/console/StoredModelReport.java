// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.console;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.engine.Engine;
import io.nereid.engine.ModelFiles;
import io.nereid.repository.problem.TextFiles;
import java.nio.file.Path;

/**
 * What the repository holds of a model, as JSON for its page: the versions on disk and which of them the version policy
 * selects, the configuration as it is written, and the fields in it, so that the page can show where each value of the
 * effective configuration comes from. Thread-safe.
 */
final class StoredModelReport {
    private static final ObjectMapper JSON = new ObjectMapper();

    private StoredModelReport() {}

    /** Reads a model from the disk. Blocks. */
    static String of(Engine engine, String name) {
        ObjectNode report = JSON.createObjectNode().put("name", name);
        ModelFiles model = engine.files(name);
        report.put("stored", model != null);
        if (model == null) {
            return report.toString();
        }
        report.put("directory", model.place().toAbsolutePath().normalize().toString());
        ArrayNode versions = report.putArray("versions");
        for (ModelFiles.Version version : model.versions()) {
            ObjectNode each = versions.addObject()
                    .put("version", Long.toString(version.version()))
                    .put("selected", version.selected());
            ServingException error = version.error();
            if (error != null) {
                each.put("error", error.describe());
            }
        }
        ArrayNode problems = report.putArray("problems");
        model.problems().forEach(problem -> problems.add(problem));
        Path file = model.configuration();
        if (file != null) {
            report.put("configurationFile", file.toAbsolutePath().normalize().toString());
            try {
                report.put("configurationText", TextFiles.read(file, TextFiles.MAX_CONFIG));
            } catch (ServingException e) {
                report.put("configurationText", "# " + e.describe());
            }
        }
        report.set("written", JSON.valueToTree(model.written()));
        return report.toString();
    }
}
