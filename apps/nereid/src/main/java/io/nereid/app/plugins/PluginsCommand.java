// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.plugins;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.process.CacheDirectory;
import io.nereid.app.process.Logging;
import io.nereid.app.text.OutputOption;
import io.nereid.app.text.ProgressPrinter;
import io.nereid.app.text.Terminal;
import io.nereid.app.text.TextTable;
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
import java.util.ServiceLoader;
import java.util.Set;
import java.util.logging.Level;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nereid plugins}: lists, installs and removes backends, storage providers, response caches and drivers of GPUs that are not part of the distribution. */
@Command(
        name = "plugins",
        mixinStandardHelpOptions = true,
        description =
                "List, install or remove optional backends, storage providers, response caches and drivers of GPUs.",
        footer = {
            "",
            "A plugin is a directory of its name with jars in it. A user's plugins are in"
                    + " $XDG_DATA_HOME/nereid/plugins or",
            "~/.local/share/nereid/plugins, or in the directory of --plugin-dir or NEREID_PLUGIN_DIR; shared"
                    + " plugins are",
            "in plugins/ of the distribution. The server reads both when it starts; its user directory is set by",
            "NEREID_PLUGIN_DIR."
        })
@SuppressWarnings("NullAway.Init") // set by picocli
public final class PluginsCommand implements Runnable {
    private static final String CENTRAL = "https://repo1.maven.org/maven2";

    @Option(
            names = "--plugin-dir",
            paramLabel = "DIR",
            scope = picocli.CommandLine.ScopeType.INHERIT,
            description = "The directory of this user's plugins.")
    private @Nullable String pluginDirectory;

    @Mixin
    private OutputOption output;

    @Spec
    private CommandSpec spec;

    @Override
    public void run() {
        list();
    }

    private PluginDirectories places() {
        return PluginDirectories.of(pluginDirectory);
    }

    @Command(description = "Show the known and the installed plugins (the default).", mixinStandardHelpOptions = true)
    void list() {
        Logging.configure(Logging.Format.TEXT, Level.OFF);
        PluginDirectories places = places();
        Map<String, Path> installed = places.installed();
        List<Listed> all = new ArrayList<>();
        for (PluginManifest plugin : PluginManifest.all()) {
            Path directory = installed.remove(plugin.name());
            String damage = directory == null ? null : PluginInstaller.damage(plugin, directory);
            all.add(new Listed(
                    plugin.name(),
                    plugin.kinds(),
                    directory == null
                            ? "not installed"
                            : damage == null
                                    ? State.of(places, plugin.name(), directory).text()
                                    : damage,
                    plugin.artifacts().isEmpty() ? 0 : plugin.bytes(),
                    directory,
                    plugin.description()));
        }
        installed.forEach((name, directory) -> {
            State state = State.of(places, name, directory);
            all.add(new Listed(name, state.kinds(), state.text(), size(directory), directory, ""));
        });
        if (output.format().isDocument()) {
            ArrayNode list = JsonNodeFactory.instance.arrayNode();
            all.forEach(each -> each.write(list.addObject()));
            output.format().print(list, out());
            return;
        }
        TextTable table = new TextTable("PLUGIN", "KIND", "STATE", "SIZE", "WHERE", "DESCRIPTION");
        for (Listed each : all) {
            table.row(
                    each.name(),
                    kinds(each.kinds()),
                    each.state(),
                    each.bytes() == 0 ? "included" : each.bytes() < 0 ? "-" : PluginInstaller.size(each.bytes()),
                    each.directory() == null ? "-" : each.directory().toString(),
                    each.description());
        }
        table.print(out());
        out().flush();
    }

    /**
     * A line of the list.
     *
     * @param bytes the size of its libraries; 0 when it is included in the distribution, -1 when it cannot be read
     * @param directory where it is installed; null when it is not
     */
    private record Listed(
            String name,
            Set<PluginKind> kinds,
            String state,
            long bytes,
            @Nullable Path directory,
            String description) {
        void write(ObjectNode to) {
            to.put("name", name);
            ArrayNode list = to.putArray("kinds");
            kinds.forEach(kind -> list.add(kind.toString()));
            to.put("state", state).put("size_bytes", bytes);
            to.put("directory", directory == null ? null : directory.toString()).put("description", description);
        }
    }

    private static String kinds(Set<PluginKind> kinds) {
        return kinds.isEmpty() ? "-" : kinds.stream().map(PluginKind::toString).collect(Collectors.joining(", "));
    }

    /**
     * The state of an installed plugin.
     *
     * @param text installed or broken, with the reason
     * @param kinds the kinds of its providers; empty when it is broken
     */
    private record State(String text, Set<PluginKind> kinds) {
        static State of(PluginDirectories places, String name, Path directory) {
            try {
                return new State(
                        "installed",
                        PluginLoader.load(places, name, directory).providers().keySet());
            } catch (IOException | ServingException | LinkageError | ServiceConfigurationError e) {
                return new State("broken: " + e.getMessage(), Set.of());
            }
        }
    }

    private static long size(Path directory) {
        try (var inside = Files.list(directory)) {
            return inside.mapToLong(p -> p.toFile().length()).sum();
        } catch (IOException e) {
            return -1;
        }
    }

    @Command(
            description = {
                "Fetch and install a plugin's libraries.",
                "They are taken from --from, else from the local Maven repository, else downloaded; each is verified"
                        + " against the checksum that this program knows."
            },
            mixinStandardHelpOptions = true)
    void install(
            @Parameters(paramLabel = "NAME", description = "See 'nereid plugins list'.") String name,
            @Option(
                            // The longest name determines the environment variable: NEREID_MAVEN_REPOSITORY.
                            names = {"--repository", "--maven-repository"},
                            paramLabel = "URL",
                            description = "The Maven repository to fetch from (default: ${DEFAULT-VALUE}).",
                            defaultValue = CENTRAL)
                    String repository,
            @Option(
                            names = "--from",
                            paramLabel = "DIR",
                            description = "Take the libraries from this directory; do not download.")
                    @Nullable Path from,
            @Option(names = "--force", description = "Reinstall an installed plugin.") boolean force) {
        Logging.configure(Logging.Format.TEXT, Level.WARNING);
        PluginManifest plugin = PluginManifest.named(name);
        PluginDirectories places = places();
        Path there = places.installed().get(name);
        if (there != null && !force && PluginInstaller.damage(plugin, there) == null) {
            done(name, "installed", there, name + " is installed in " + there);
            return;
        }
        PrintWriter err = spec.commandLine().getErr();
        err.println(name + ": "
                + (plugin.artifacts().isEmpty()
                        ? "included in the distribution, nothing to fetch"
                        : plugin.artifacts().size() + " libraries, " + PluginInstaller.size(plugin.bytes()))
                + (plugin.unpackedBytes() > 0
                        ? ", and " + PluginInstaller.size(plugin.unpackedBytes())
                                + " in the cache directory at its first use"
                        : "")
                + "; licence " + plugin.licence());
        if (!plugin.needs().isEmpty()) {
            err.println("  it needs " + plugin.needs());
        }
        err.flush();
        Path directory = new PluginInstaller(
                        from != null ? List.of(from) : List.of(localRepository()),
                        repository,
                        from != null,
                        err,
                        Terminal.err())
                .install(plugin, places.own());
        probe(plugin, places, directory, err);
        done(name, "installed", directory, name + " is installed in " + directory);
    }

    /** Prints what was done, as text or as a document. */
    private void done(String name, String state, @Nullable Path directory, String text) {
        if (output.format().isDocument()) {
            ObjectNode document = JsonNodeFactory.instance.objectNode();
            document.put("name", name).put("state", state);
            document.put("directory", directory == null ? null : directory.toString());
            output.format().print(document, out());
            return;
        }
        out().println(text);
        out().flush();
    }

    /** Loads the plugin once, so that an unusable one is reported now rather than when the server starts. */
    private static void probe(PluginManifest plugin, PluginDirectories places, Path directory, PrintWriter err) {
        String name = plugin.name();
        try {
            List<Backend> backends =
                    new ArrayList<>(PluginLoader.load(places, name, directory).of(PluginKind.BACKEND, Backend.class));
            if (!plugin.libraries().isEmpty()) {
                // Those of the distribution load them; one that does not use them is not tested.
                System.setProperty(
                        plugin.libraries(), directory.toAbsolutePath().toString());
                for (Backend backend : ServiceLoader.load(Backend.class)) {
                    if (plugin.libraries().startsWith("nereid." + backend.name() + ".")) {
                        backends.add(backend);
                    }
                }
            }
            for (Backend backend : backends) {
                String reason = ProgressPrinter.during(
                        "unpacking and testing " + name, err, () -> String.valueOf(backend.unavailableReason()));
                if (!reason.equals("null")) {
                    throw ServingException.of(
                            ErrorCode.FAILED_PRECONDITION,
                            "plugin '" + name + "' is installed, but does not work: " + reason,
                            "see its requirements in 'nereid plugins list'");
                }
            }
        } catch (IOException | LinkageError | ServiceConfigurationError e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "plugin '" + name + "' is installed, but does not work: " + e.getMessage(),
                    e);
        }
    }

    private static Path localRepository() {
        String given = System.getProperty("maven.repo.local");
        return given != null ? Path.of(given) : Path.of(System.getProperty("user.home", "."), ".m2", "repository");
    }

    @Command(description = "Remove a plugin and the files that it has unpacked.", mixinStandardHelpOptions = true)
    void remove(@Parameters(paramLabel = "NAME") String name) {
        PluginDirectories places = places();
        Map<String, Path> installed = places.installed();
        Path directory = installed.get(name);
        if (directory == null) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "plugin '" + name + "' is not installed",
                    installed.isEmpty() ? "none is" : "installed: " + String.join(", ", installed.keySet()));
        }
        List<Path> doomed = new ArrayList<>(List.of(directory));
        Path unpacked = CacheDirectory.directory().resolve("javacpp");
        PluginManifest.all().stream()
                .filter(p -> p.name().equals(name))
                .flatMap(p -> p.artifacts().stream())
                .map(a -> unpacked.resolve(a.fileName()))
                .filter(Files::isDirectory)
                .forEach(doomed::add);
        doomed.addAll(unpackedLibraries(name));
        for (Path each : doomed) {
            try {
                PluginDirectories.delete(each);
            } catch (IOException e) {
                throw ServingException.wrap(
                        ErrorCode.FAILED_PRECONDITION,
                        "cannot remove " + each,
                        "remove it with the rights of its owner",
                        e);
            }
        }
        done(name, "removed", null, name + " is removed; running servers use it until they are stopped");
    }

    /** What ONNX Runtime's libraries have become in the cache directory: a directory for each content, named after the jar. */
    private static List<Path> unpackedLibraries(String name) {
        List<String> prefixes = PluginManifest.all().stream()
                .filter(p -> p.name().equals(name) && !p.libraries().isEmpty())
                .flatMap(p -> p.artifacts().stream())
                .map(a -> a.artifact() + "-" + a.version() + "-")
                .toList();
        Path cache = CacheDirectory.directory();
        if (prefixes.isEmpty() || !Files.isDirectory(cache)) {
            return List.of();
        }
        try (var inside = Files.list(cache)) {
            return inside.filter(p -> prefixes.stream().anyMatch(String.valueOf(p.getFileName())::startsWith))
                    .filter(Files::isDirectory)
                    .toList();
        } catch (IOException e) {
            return List.of();
        }
    }

    private PrintWriter out() {
        return spec.commandLine().getOut();
    }
}
