// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0

import java.util.Set;
import java.util.spi.ToolProvider;

/**
 * Runs jlink so that the same modules give the same bytes more often: {@code java LinkRuntime.java OPTION…}. Ends with 3 when this process of Java cannot, and another one
 * may.
 *
 * <p>jlink writes some of its classes in the order of sets, which {@code Set.of} chooses anew in each process. The direction is fixed here; the place
 * where large sets begin is not.
 */
public final class LinkRuntime {
    private LinkRuntime() {}

    public static void main(String[] arguments) {
        if (!Set.of("a", "b").iterator().next().equals("a")) {
            System.exit(3);
        }
        System.exit(ToolProvider.findFirst("jlink").orElseThrow().run(System.out, System.err, arguments));
    }
}
