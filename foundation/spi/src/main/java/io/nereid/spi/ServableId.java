// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

/**
 * The name and version number of a servable. Immutable.
 *
 * @param model the model's name
 * @param version the version number, ≥ 0
 */
public record ServableId(String model, long version) implements Comparable<ServableId> {
    @Override
    public int compareTo(ServableId other) {
        int byModel = model.compareTo(other.model);
        return byModel != 0 ? byModel : Long.compare(version, other.version);
    }

    @Override
    public String toString() {
        return model + ":" + version;
    }
}
