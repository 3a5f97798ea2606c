// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.report;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The report for spreadsheets: a line for each load, with the names of the JSON report as heads. Stateless. */
final class CsvReport {
    private CsvReport() {}

    static String of(PerfReport report) {
        JsonNode loads = JsonReport.of(report).path("loads");
        Set<String> names = new LinkedHashSet<>();
        for (JsonNode load : loads) {
            for (Map.Entry<String, JsonNode> field : load.properties()) {
                if (field.getValue().isValueNode()) {
                    names.add(field.getKey());
                }
            }
            for (Map.Entry<String, JsonNode> field : load.path("server").properties()) {
                names.add("server_" + field.getKey());
            }
        }
        StringBuilder text = new StringBuilder(String.join(",", names)).append('\n');
        for (JsonNode load : loads) {
            List<String> cells = new ArrayList<>();
            for (String name : names) {
                JsonNode value =
                        load.has(name) ? load.path(name) : load.path("server").path(name.replaceFirst("^server_", ""));
                cells.add(value.isNull() ? "" : value.asText());
            }
            text.append(String.join(",", cells)).append('\n');
        }
        return text.toString();
    }
}
