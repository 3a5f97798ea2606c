// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.backend.Backend;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceConfigurationError;
import java.util.logging.Level;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nereid plugins}: list, install and remove backends that are too large to come with the program. */
@Command(
        name = "plugins",
        mixinStandardHelpOptions = true,
        description = "List, install or remove backends that do not come with the program.",
        footer = {
            "",
            "A plugin is a directory of its name with jars in it. This user's lie in $XDG_DATA_HOME/nereid/plugins or",
            "~/.local/share/nereid/plugins, or where --plugin-dir or NEREID_PLUGIN_DIR says; those for everybody lie"
                    + " in",
            "plugins/ of the distribution. The server looks in both when it starts; to it the directory is named by",
            "NEREID_PLUGIN_DIR."
        })
@SuppressWarnings("NullAway.Init") // set by picocli
final class PluginsCommand implements Runnable {
    private static final String CENTRAL = "https://repo1.maven.org/maven2";

    @Option(
            names = "--plugin-dir",
            paramLabel = "DIR",
            scope = picocli.CommandLine.ScopeType.INHERIT,
            description = "The directory of this user's plugins.")
    private @Nullable String pluginDirectory;

    @Spec
    private CommandSpec spec;

    @Override
    public void run() {
        list();
    }

    private PluginPlaces places() {
        return PluginPlaces.of(pluginDirectory);
    }

    @Command(description = "Show what is there and what there is; the default.", mixinStandardHelpOptions = true)
    void list() {
        Logging.configure(Logging.Format.TEXT, Level.OFF);
        PluginPlaces places = places();
        Map<String, Path> installed = places.installed();
        Table table = new Table("PLUGIN", "STATE", "SIZE", "WHERE", "DESCRIPTION");
        for (PluginManifest plugin : PluginManifest.all()) {
            Path directory = installed.remove(plugin.name());
            String damage = directory == null ? null : PluginInstaller.damage(plugin, directory);
            table.row(
                    plugin.name(),
                    directory == null
                            ? "not installed"
                            : damage == null ? state(places, plugin.name(), directory) : damage,
                    PluginInstaller.size(plugin.bytes()),
                    directory == null ? "-" : directory.toString(),
                    plugin.description());
        }
        installed.forEach((name, directory) ->
                table.row(name, state(places, name, directory), size(directory), directory.toString(), ""));
        table.print(out());
        out().flush();
    }

    private static String state(PluginPlaces places, String name, Path directory) {
        try {
            Backends.load(places, name, directory);
            return "installed";
        } catch (IOException | LinkageError | ServiceConfigurationError e) {
            return "broken: " + e.getMessage();
        }
    }

    private static String size(Path directory) {
        try (var inside = Files.list(directory)) {
            return PluginInstaller.size(
                    inside.mapToLong(p -> p.toFile().length()).sum());
        } catch (IOException e) {
            return "-";
        }
    }

    @Command(
            description = {
                "Fetch a plugin's libraries and put them in place.",
                "They are taken from --from, else from the local Maven repository, else fetched; each must have the"
                        + " checksum that this program knows."
            },
            mixinStandardHelpOptions = true)
    void install(
            @Parameters(paramLabel = "NAME", description = "See 'nereid plugins list'.") String name,
            @Option(
                            // The longest name is the environment variable's: NEREID_MAVEN_REPOSITORY.
                            names = {"--repository", "--maven-repository"},
                            paramLabel = "URL",
                            description = "The Maven repository to fetch from (default: ${DEFAULT-VALUE}).",
                            defaultValue = CENTRAL)
                    String repository,
            @Option(
                            names = "--from",
                            paramLabel = "DIR",
                            description = "Take the libraries from this directory; fetch nothing.")
                    @Nullable
                    Path from,
            @Option(names = "--force", description = "Install again what is there already.") boolean force) {
        Logging.configure(Logging.Format.TEXT, Level.WARNING);
        PluginManifest plugin = PluginManifest.named(name);
        PluginPlaces places = places();
        Path there = places.installed().get(name);
        if (there != null && !force && PluginInstaller.damage(plugin, there) == null) {
            out().println(name + " is installed in " + there);
            out().flush();
            return;
        }
        PrintWriter err = spec.commandLine().getErr();
        err.println(name + ": " + plugin.artifacts().size() + " libraries, " + PluginInstaller.size(plugin.bytes())
                + (plugin.unpackedBytes() > 0
                        ? ", and " + PluginInstaller.size(plugin.unpackedBytes())
                                + " in the cache directory once it is used"
                        : "")
                + "; licence " + plugin.licence());
        err.flush();
        Path directory = new PluginInstaller(
                        from != null ? List.of(from) : List.of(localRepository()),
                        repository,
                        from != null,
                        err,
                        terminal())
                .install(plugin, places.own());
        probe(places, name, directory, err);
        out().println(name + " is installed in " + directory);
        out().flush();
    }

    /** Whether messages go to a terminal. Newer JDKs give a console even where there is none. */
    private static boolean terminal() {
        try {
            String file = Path.of("/proc/self/fd/2").toRealPath().toString();
            return file.startsWith("/dev/pts/") || file.startsWith("/dev/tty");
        } catch (IOException e) {
            return false;
        }
    }

    /** Whether it works here is better known now than when the server starts. */
    private static void probe(PluginPlaces places, String name, Path directory, PrintWriter err) {
        try {
            for (Backend backend : Backends.load(places, name, directory)) {
                String reason = Progress.during(
                        "unpacking and trying " + name, err, () -> String.valueOf(backend.unavailable()));
                if (!reason.equals("null")) {
                    throw ServingException.of(
                            ErrorCode.FAILED_PRECONDITION,
                            "plugin '" + name + "' is in place, but does not work: " + reason,
                            "see what it needs in 'nereid plugins list'");
                }
            }
        } catch (IOException | LinkageError | ServiceConfigurationError e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "plugin '" + name + "' is in place, but does not work: " + e.getMessage(),
                    e);
        }
    }

    private static Path localRepository() {
        String given = System.getProperty("maven.repo.local");
        return given != null ? Path.of(given) : Path.of(System.getProperty("user.home", "."), ".m2", "repository");
    }

    @Command(description = "Remove a plugin and what it has unpacked.", mixinStandardHelpOptions = true)
    void remove(@Parameters(paramLabel = "NAME") String name) {
        PluginPlaces places = places();
        Map<String, Path> installed = places.installed();
        Path directory = installed.get(name);
        if (directory == null) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "plugin '" + name + "' is not installed",
                    installed.isEmpty() ? "none is" : "installed: " + String.join(", ", installed.keySet()));
        }
        List<Path> doomed = new ArrayList<>(List.of(directory));
        Path unpacked = Scratch.directory().resolve("javacpp");
        PluginManifest.all().stream()
                .filter(p -> p.name().equals(name))
                .flatMap(p -> p.artifacts().stream())
                .map(a -> unpacked.resolve(a.fileName()))
                .filter(Files::isDirectory)
                .forEach(doomed::add);
        for (Path each : doomed) {
            try {
                PluginPlaces.delete(each);
            } catch (IOException e) {
                throw ServingException.wrap(
                        ErrorCode.FAILED_PRECONDITION,
                        "cannot remove " + each,
                        "remove it with the rights of its owner",
                        e);
            }
        }
        out().println(name + " is removed; servers that run it go on until they are stopped");
        out().flush();
    }

    private PrintWriter out() {
        return spec.commandLine().getOut();
    }
}
