// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.backend.Backend;
import io.nereid.base.Code;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.ServiceLoader;

/** The backends on the class path, found once. */
final class Backends {
    private Backends() {}

    /** By name; two of one name are an error of the installation. */
    static List<Backend> find() {
        List<Backend> found = new ArrayList<>();
        for (Backend backend : ServiceLoader.load(Backend.class)) {
            for (Backend other : found) {
                if (other.name().equals(backend.name())) {
                    throw ServingException.of(
                            Code.FAILED_PRECONDITION,
                            "two backends are called '" + backend.name() + "': "
                                    + other.getClass().getName() + " and "
                                    + backend.getClass().getName(),
                            "remove one of them from the class path");
                }
            }
            found.add(backend);
        }
        found.sort(Comparator.comparing(Backend::name));
        return List.copyOf(found);
    }
}
