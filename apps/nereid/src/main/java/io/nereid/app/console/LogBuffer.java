// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.console;

import io.nereid.json.JsonWriter;
import java.io.ByteArrayOutputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;
import org.jspecify.annotations.Nullable;

/** The last records of the log, for the console's page of it. Thread-safe. */
final class LogBuffer extends Handler {
    private static final int MOST = 1_000;
    private static final int MOST_TEXT = 16 << 10;

    private final SimpleFormatter messages = new SimpleFormatter();

    // guarded by this
    private final ArrayDeque<LogRecord> records = new ArrayDeque<>();
    private long added;

    /** Begins to keep what is logged. */
    void install() {
        Logger.getLogger("").addHandler(this);
    }

    /** The lines for one client: those that are kept, then the new ones. */
    LiveStreams.Lines reader() {
        long[] read = {0};
        return () -> {
            ByteArrayOutputStream next = new ByteArrayOutputStream();
            List<LogRecord> unread = new ArrayList<>();
            synchronized (this) {
                long first = added - records.size();
                if (read[0] > 0 && read[0] < first) {
                    next.writeBytes(("{\"missed\":" + (first - read[0]) + "}\n").getBytes(StandardCharsets.US_ASCII));
                }
                long at = first;
                for (LogRecord entry : records) {
                    if (at >= read[0]) {
                        unread.add(entry);
                    }
                    at++;
                }
                read[0] = added;
            }
            unread.forEach(entry -> next.writeBytes(line(entry)));
            return next.toByteArray();
        };
    }

    /** Keeps a record as it is: it becomes text only when a page shows it. */
    @Override
    public synchronized void publish(LogRecord entry) {
        records.addLast(entry);
        added++;
        if (records.size() > MOST) {
            records.removeFirst();
        }
    }

    private byte[] line(LogRecord entry) {
        JsonWriter json = new JsonWriter(256);
        json.beginObject()
                .name("time")
                .value(entry.getMillis())
                .name("level")
                .value(level(entry.getLevel()))
                .name("logger")
                .value(String.valueOf(entry.getLoggerName()))
                .name("message")
                .value(shortened(String.valueOf(messages.formatMessage(entry))));
        String trace = trace(entry.getThrown());
        if (trace != null) {
            json.name("exception").value(shortened(trace));
        }
        json.endObject();
        byte[] line = Arrays.copyOf(json.array(), json.length() + 1);
        line[json.length()] = '\n';
        return line;
    }

    private static String level(Level level) {
        int value = level.intValue();
        return value >= Level.SEVERE.intValue()
                ? "ERROR"
                : value >= Level.WARNING.intValue() ? "WARN" : value >= Level.INFO.intValue() ? "INFO" : "DEBUG";
    }

    private static @Nullable String trace(@Nullable Throwable thrown) {
        if (thrown == null) {
            return null;
        }
        StringWriter text = new StringWriter();
        thrown.printStackTrace(new PrintWriter(text));
        return text.toString();
    }

    private static String shortened(String text) {
        return text.length() <= MOST_TEXT ? text : text.substring(0, MOST_TEXT) + "…";
    }

    @Override
    public void flush() {
        // nothing is held back
    }

    @Override
    public void close() {
        Logger.getLogger("").removeHandler(this);
    }
}
