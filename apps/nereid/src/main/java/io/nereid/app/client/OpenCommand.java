// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.client;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code nereid open}: opens the console of a running server in the browser. Confined to one thread. */
@Command(
        name = "open",
        mixinStandardHelpOptions = true,
        description = "Open the console of a running server in the browser, or print its URL where there is none.")
@SuppressWarnings("NullAway.Init") // set by picocli
public final class OpenCommand implements Runnable {
    private static final String CONSOLE = "/console";

    @Option(names = "--print", description = "Only print the URL.")
    private boolean print;

    @Mixin
    private ClientOptions server;

    @Spec
    private CommandSpec spec;

    @Override
    public void run() {
        ServerClient client = server.client(spec);
        client.get("/v2/health/live"); // is there a server at all?
        String url = client.connection().server().url() + CONSOLE;
        List<String> browser = print ? null : browser(System.getProperty("os.name", ""), System.getenv(), url);
        PrintWriter out = spec.commandLine().getOut();
        if (browser == null || !started(browser)) {
            out.println(url);
        } else {
            out.println("opening " + url);
        }
        out.flush();
    }

    /** The command that opens a URL; null where there is neither a desktop nor such a command. */
    static @Nullable List<String> browser(String system, Map<String, String> environment, String url) {
        String name = system.toLowerCase(Locale.ROOT);
        if (name.contains("mac")) {
            return List.of("open", url);
        }
        if (name.contains("win")) {
            return List.of("rundll32", "url.dll,FileProtocolHandler", url);
        }
        boolean desktop = environment.containsKey("DISPLAY") || environment.containsKey("WAYLAND_DISPLAY");
        if (!desktop) {
            return null;
        }
        for (String directory : environment.getOrDefault("PATH", "").split(":")) {
            Path opener = Path.of(directory, "xdg-open");
            if (Files.isExecutable(opener)) {
                return List.of(opener.toString(), url);
            }
        }
        return null;
    }

    private static boolean started(List<String> command) {
        try {
            Process unused = new ProcessBuilder(new ArrayList<>(command))
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start();
            return true;
        } catch (IOException e) {
            return false;
        }
    }
}
