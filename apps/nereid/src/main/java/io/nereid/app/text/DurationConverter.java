// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.text;

import io.nereid.base.ServingException;
import io.nereid.base.Units;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Checks that the value of an option is a duration, such as {@code 5ms}, so that an error names the option. Stateless. */
public final class DurationConverter implements ITypeConverter<String> {
    @Override
    public String convert(String value) {
        try {
            Units.duration(value);
            return value;
        } catch (ServingException e) {
            throw new TypeConversionException(e.getMessage());
        }
    }
}
