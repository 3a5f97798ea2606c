// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/** The list of estimators in the documentation, which a script makes from the fixtures, is what the factory builds. */
class DocumentedEstimatorsTest {
    @Test
    void theListOfTheDocumentationIsWhatIsComputed() throws IOException {
        String document = Files.readString(Path.of("..", "..", "docs", "FORMATS.md"));
        String list = document.substring(
                document.indexOf("<!-- list_estimators.py: begin -->"),
                document.indexOf("<!-- list_estimators.py: end -->"));
        Set<String> computed = new TreeSet<>();
        Set<String> refused = new TreeSet<>();
        list.lines().filter(line -> line.startsWith("| `sklearn")).forEach(line -> {
            String[] cells = line.split("\\|", -1);
            computed.addAll(names(cells[2], ","));
            refused.addAll(names(cells[3], ";"));
        });
        Set<String> supported = new TreeSet<>(EstimatorFactory.supported());
        // The member of another estimator that is not public.
        supported.removeIf(name -> name.startsWith("_"));
        assertThat(computed).hasSizeGreaterThan(180).isEqualTo(supported);
        assertThat(refused).isNotEmpty().doesNotContainAnyElementsOf(supported);
    }

    private static Set<String> names(String cell, String separator) {
        Set<String> names = new TreeSet<>();
        for (String part : cell.split(separator, -1)) {
            String name = part.replaceFirst(":.*", "").strip();
            if (!name.isEmpty()) {
                names.add(name);
            }
        }
        return names;
    }
}
