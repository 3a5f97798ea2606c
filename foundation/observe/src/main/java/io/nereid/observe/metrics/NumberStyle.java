// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.observe.metrics;

import java.math.BigDecimal;
import java.util.Locale;

/** How floating-point numbers are written. */
public enum NumberStyle {
    /** All digits that are needed to read the same number back; integers below 10^15 without a point. */
    EXACT {
        @Override
        String text(double value) {
            return value == Math.rint(value) && Math.abs(value) < 1e15
                    ? Long.toString((long) value)
                    : Double.toString(value);
        }
    },
    /** At most six significant digits, as C++ streams write numbers by default. */
    SIX_DIGITS {
        @Override
        String text(double value) {
            return value == (long) value && value < 1e6
                    ? Long.toString((long) value)
                    : withoutZeros(
                            String.format(Locale.ROOT, value < 1e6 ? "%." + decimals(value) + "f" : "%.5e", value));
        }
    };

    /** Renders a sample's value, a bound or a quantile for Prometheus' text format. */
    abstract String text(double value);

    /** Renders a sample's value for OpenMetrics. */
    String value(double value) {
        return Double.isInfinite(value) ? (value > 0 ? "+Inf" : "-Inf") : text(value);
    }

    /**
     * Renders a bound or a quantile for OpenMetrics, in the form that the format prescribes: as {@link #text} rounds
     * it, with a point or an exponent, and with an exponent from a million on and below a ten-thousandth.
     */
    String canonical(double value) {
        double rounded = Double.isFinite(value) ? Double.parseDouble(text(value)) : value;
        if (!Double.isFinite(rounded)) {
            return value(rounded);
        }
        if (rounded == 0) {
            return "0.0";
        }
        BigDecimal decimal = new BigDecimal(Double.toString(rounded)).stripTrailingZeros();
        int exponent = decimal.precision() - decimal.scale() - 1;
        if (exponent >= -4 && exponent < 6) {
            String plain = decimal.toPlainString();
            return plain.indexOf('.') < 0 ? plain + ".0" : plain;
        }
        String digits = decimal.unscaledValue().abs().toString();
        StringBuilder b = new StringBuilder(rounded < 0 ? "-" : "").append(digits.charAt(0));
        if (digits.length() > 1) {
            b.append('.').append(digits, 1, digits.length());
        }
        b.append('e').append(exponent < 0 ? '-' : '+');
        return b.append(Math.abs(exponent) < 10 ? "0" : "")
                .append(Math.abs(exponent))
                .toString();
    }

    private static int decimals(double value) {
        int whole = Long.toString((long) value).length();
        return Math.max(0, 6 - whole);
    }

    private static String withoutZeros(String text) {
        int e = text.indexOf('e');
        String digits = e < 0 ? text : text.substring(0, e);
        if (digits.indexOf('.') >= 0) {
            digits = digits.replaceAll("0+$", "").replaceAll("\\.$", "");
        }
        return e < 0 ? digits : digits + text.substring(e);
    }
}
