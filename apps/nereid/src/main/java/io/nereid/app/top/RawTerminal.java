// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.top;

import io.nereid.base.Threads;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The terminal as a screen: keys arrive one by one and are not shown, and what was there before comes back at the end. Keys need
 * {@code stty}, which every Unix has; without it the screen works, and Ctrl-C ends it. Used by one thread; the keys are read by another.
 */
final class RawTerminal implements AutoCloseable {
    private static final File TTY = new File("/dev/tty");
    private static final long SECONDS = 2;
    private static final String BEGIN = "\u001b[?1049h\u001b[?25l";
    private static final String END = "\u001b[?25h\u001b[?1049l";
    private static final String HOME = "\u001b[H";
    private static final String CLEAR_LINE = "\u001b[K";
    private static final String CLEAR_REST = "\u001b[J";

    private static final Pattern SIZE = Pattern.compile("(\\d{1,5}) (\\d{1,5})");
    private static final int ROWS = 24;
    private static final int COLUMNS = 200;

    private final PrintWriter out;
    private final @Nullable String before;
    private final LinkedBlockingQueue<Integer> keys = new LinkedBlockingQueue<>();
    private final Thread hook = Threads.named("terminal").newThread(this::restore);

    private int rows = ROWS;
    private int columns = COLUMNS;
    private List<String> shown = List.of();

    RawTerminal(PrintWriter out, InputStream in) {
        this.out = out;
        String state = stty("-g");
        this.before = state == null ? null : state.strip();
        if (before != null) {
            Object unused = stty("-icanon", "-echo", "min", "1");
            Threads.named("keys").newThread(() -> read(in)).start();
        }
        Runtime.getRuntime().addShutdownHook(hook);
        out.print(BEGIN);
        out.flush();
        measure();
    }

    private void read(InputStream in) {
        try {
            for (int key = in.read(); key >= 0; key = in.read()) {
                keys.add(key);
            }
        } catch (IOException e) {
            keys.add((int) 'q'); // the terminal is gone
        }
    }

    /** Waits for a key; -1 when none comes within the time. */
    int key(long nanos) {
        try {
            Integer key = keys.poll(nanos, TimeUnit.NANOSECONDS);
            return key == null ? -1 : key;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return 'q';
        }
    }

    /** Reads the size of the terminal, which may change. */
    void measure() {
        String size = before == null ? null : stty("size");
        Matcher numbers = SIZE.matcher(size == null ? "" : size.strip());
        if (numbers.matches()) {
            // a terminal without a size has zeros
            rows = numbers.group(1).equals("0") ? ROWS : Integer.parseInt(numbers.group(1));
            columns = numbers.group(2).equals("0") ? COLUMNS : Integer.parseInt(numbers.group(2));
        }
    }

    /**
     * Shows lines in place of those before, as many and as much of them as there is space for.
     *
     * @param kept how many lines at the end are shown in any case
     */
    void show(List<String> lines, int kept) {
        List<String> fitting = fitting(lines, kept, rows - 1, columns);
        if (fitting.equals(shown)) {
            return;
        }
        shown = fitting;
        StringBuilder text = new StringBuilder(HOME);
        fitting.forEach(line -> text.append(line).append(CLEAR_LINE).append("\r\n"));
        out.print(text.append(CLEAR_REST));
        out.flush();
    }

    /** The lines that fit into a size; the last ones stay, and those before them are left out. */
    static List<String> fitting(List<String> lines, int kept, int rows, int columns) {
        List<String> all = new ArrayList<>(lines);
        int surplus = lines.size() - Math.max(kept + 1, rows);
        if (surplus > 0) {
            int end = lines.size() - kept;
            int from = Math.max(0, end - surplus - 1);
            all.subList(from, end).clear();
            all.add(from, "  … " + (end - from) + " more");
        }
        all.replaceAll(line -> line.length() <= columns ? line : line.substring(0, columns));
        return all;
    }

    private void restore() {
        out.print(END);
        out.flush();
        if (before != null) {
            Object unused = stty(before);
        }
    }

    @Override
    public void close() {
        restore();
        try {
            boolean unused = Runtime.getRuntime().removeShutdownHook(hook);
        } catch (IllegalStateException e) {
            // the process is ending, and the hook runs
            return;
        }
    }

    /** Runs stty on this terminal; returns what it prints, or null when it fails. */
    private static @Nullable String stty(String... arguments) {
        List<String> command = new ArrayList<>(List.of("stty"));
        command.addAll(List.of(arguments));
        try {
            Process process = new ProcessBuilder(command)
                    .redirectInput(TTY)
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start();
            String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
            return process.waitFor(SECONDS, TimeUnit.SECONDS) && process.exitValue() == 0 ? text : null;
        } catch (IOException e) {
            return null;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return null;
        }
    }
}
