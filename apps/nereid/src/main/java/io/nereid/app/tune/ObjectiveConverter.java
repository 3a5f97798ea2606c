// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.tune;

import io.nereid.spi.config.parameters.LatencyObjective;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Reads the value of an option, such as {@code p99=20ms}. Stateless. */
final class ObjectiveConverter implements ITypeConverter<LatencyObjective> {
    @Override
    public LatencyObjective convert(String text) {
        try {
            return LatencyObjective.parse(text);
        } catch (IllegalArgumentException e) {
            throw new TypeConversionException(e.getMessage());
        }
    }
}
