// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.top;

import io.nereid.base.Threads;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
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

    private final PrintWriter out;
    private final @Nullable String before;
    private final LinkedBlockingQueue<Integer> keys = new LinkedBlockingQueue<>();
    private final Thread hook = Threads.named("terminal").newThread(this::restore);

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

    /** Shows lines in place of those before. */
    void show(List<String> lines) {
        StringBuilder text = new StringBuilder(HOME);
        lines.forEach(line -> text.append(line).append(CLEAR_LINE).append("\r\n"));
        out.print(text.append(CLEAR_REST));
        out.flush();
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
        List<String> command = new java.util.ArrayList<>(List.of("stty"));
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
