// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/** What is wrong with a resource, all of it. Confined to one admission. */
final class Problems {
    private static final int MOST = 100;

    private final Set<String> lines = new LinkedHashSet<>();
    private boolean misshapen;

    /** Something at a path. */
    void add(String path, String problem) {
        lines.add(path + ": " + problem);
    }

    /** As {@link #add}; the value is of a wrong type, so that nothing more can be said of it. */
    void addShape(String line) {
        lines.add(line);
        misshapen = true;
    }

    /** Whether records can be read of the resource. */
    boolean misshapen() {
        return misshapen;
    }

    List<String> lines() {
        return new ArrayList<>(lines);
    }

    /** Throws when there is anything. */
    void refuse(String what) {
        if (lines.isEmpty()) {
            return;
        }
        List<String> all = lines();
        if (all.size() > MOST) {
            int more = all.size() - MOST;
            all = all.subList(0, MOST);
            all.add("and " + more + " problems more");
        }
        String head = all.size() == 1 ? what + " is invalid: " : what + " is invalid, " + all.size() + " problems:\n";
        throw ServingException.invalidArgument(head + String.join("\n", all));
    }
}
