// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.endpoint.HttpReply;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.Instant;
import java.util.Locale;
import java.util.logging.Formatter;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogManager;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;

/** Sends the log to standard error, a line a record, as text or as JSON. */
final class Logging {
    /** How a record looks. */
    enum Format {
        /** {@code 2026-01-31T12:00:00.123Z INFO  logger - message}. */
        TEXT,
        /** One JSON object a line. */
        JSON
    }

    private Logging() {}

    static void configure(Format format, Level level) {
        LogManager.getLogManager().reset();
        Logger root = Logger.getLogger("");
        root.setLevel(level);
        root.addHandler(new ErrHandler(format == Format.JSON ? new JsonFormatter() : new TextFormatter(), System.err));
        // Netty tells at INFO level which of its options it found; that is of no use to whoever serves models.
        Logger.getLogger("io.netty").setLevel(Level.WARNING);
    }

    private static final class ErrHandler extends Handler {
        private final PrintStream err;

        ErrHandler(Formatter formatter, PrintStream err) {
            this.err = err;
            setFormatter(formatter);
        }

        @Override
        public void publish(LogRecord entry) {
            if (isLoggable(entry)) {
                err.print(getFormatter().format(entry));
            }
        }

        @Override
        public void flush() {
            err.flush();
        }

        @Override
        public void close() {
            flush();
        }
    }

    private static String level(LogRecord entry) {
        int value = entry.getLevel().intValue();
        return value >= Level.SEVERE.intValue()
                ? "ERROR"
                : value >= Level.WARNING.intValue() ? "WARN" : value >= Level.INFO.intValue() ? "INFO" : "DEBUG";
    }

    private static String trace(@Nullable Throwable thrown) {
        if (thrown == null) {
            return "";
        }
        StringWriter text = new StringWriter();
        thrown.printStackTrace(new PrintWriter(text));
        return text.toString();
    }

    private static final class TextFormatter extends Formatter {
        @Override
        public String format(LogRecord entry) {
            return Instant.ofEpochMilli(entry.getMillis()) + " " + String.format(Locale.ROOT, "%-5s", level(entry))
                    + " " + entry.getLoggerName() + " - " + formatMessage(entry) + "\n" + trace(entry.getThrown());
        }
    }

    private static final class JsonFormatter extends Formatter {
        @Override
        public String format(LogRecord entry) {
            StringBuilder line = new StringBuilder("{\"time\":\"")
                    .append(Instant.ofEpochMilli(entry.getMillis()))
                    .append("\",\"level\":\"")
                    .append(level(entry))
                    .append("\",\"logger\":")
                    .append(HttpReply.quote(String.valueOf(entry.getLoggerName())))
                    .append(",\"message\":")
                    .append(HttpReply.quote(String.valueOf(formatMessage(entry))));
            if (entry.getThrown() != null) {
                line.append(",\"exception\":").append(HttpReply.quote(trace(entry.getThrown())));
            }
            return line.append("}\n").toString();
        }
    }
}
