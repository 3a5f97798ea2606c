// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.plugins;

import io.nereid.app.plugins.PluginManifest.Artifact;
import io.nereid.app.text.DownloadProgress;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * Installs a plugin's libraries atomically: all of them, each verified against its SHA-256, or none. Confined to one
 * thread.
 */
final class PluginInstaller {
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    private final List<Path> local;
    private final String repository;
    private final boolean offline;
    private final PrintWriter err;
    private final boolean terminal;
    private final Clock clock = Clock.system();

    /**
     * Creates an installer.
     *
     * @param local directories that may already have the libraries, in Maven's layout or flat
     * @param repository the Maven repository for missing libraries
     * @param offline whether downloads are disabled
     * @param err receives progress messages
     * @param terminal whether {@code err} is a terminal, where a progress line can be overwritten
     */
    PluginInstaller(List<Path> local, String repository, boolean offline, PrintWriter err, boolean terminal) {
        this.local = local;
        this.repository = repository.endsWith("/") ? repository.substring(0, repository.length() - 1) : repository;
        this.offline = offline;
        this.err = err;
        this.terminal = terminal;
    }

    /**
     * Installs a plugin into a directory of plugins, and replaces an installed one of the same name.
     *
     * @throws ServingException when the installation fails; an installed plugin is then unchanged
     */
    Path install(PluginManifest plugin, Path plugins) {
        Path target = plugins.resolve(plugin.name());
        Path fresh = null;
        try {
            Files.createDirectories(plugins);
            // In the target's file system, so that the final move is atomic, under a name that cannot be a plugin's.
            // Not a temporary directory: that would be private to this user, and a plugin can be shared by all users.
            fresh = Files.createDirectory(plugins.resolve(".installing-" + plugin.name() + "-"
                    + ProcessHandle.current().pid() + "-" + clock.nanos()));
            for (Artifact artifact : plugin.artifacts()) {
                fetch(artifact, fresh.resolve(artifact.fileName()));
            }
            if (Files.exists(target)) {
                Path old = Files.createTempDirectory(plugins, ".replaced-");
                move(target, old.resolve("old"));
                move(fresh, target);
                PluginDirectories.delete(old);
            } else {
                move(fresh, target);
            }
            fresh = null;
            return target;
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "cannot install plugin '" + plugin.name() + "' in " + plugins + ": " + text(e),
                    "the directory must be writable and have " + size(plugin.bytes()) + " of free space; select another"
                            + " one with --plugin-dir or " + PluginDirectories.VARIABLE,
                    e);
        } finally {
            if (fresh != null && Files.exists(fresh)) {
                try {
                    PluginDirectories.delete(fresh);
                } catch (IOException e) {
                    err.println("  " + fresh + " could not be removed: " + text(e));
                }
            }
        }
    }

    private static String text(IOException e) {
        return e.getClass().getSimpleName() + (e.getMessage() == null ? "" : ": " + e.getMessage());
    }

    private static void move(Path from, Path to) throws IOException {
        try {
            Files.move(from, to, StandardCopyOption.ATOMIC_MOVE);
        } catch (AtomicMoveNotSupportedException e) {
            Files.move(from, to);
        }
    }

    private void fetch(Artifact artifact, Path target) throws IOException {
        for (Path directory : local) {
            for (Path file : List.of(directory.resolve(artifact.path()), directory.resolve(artifact.fileName()))) {
                if (!Files.isRegularFile(file) || Files.size(file) != artifact.bytes()) {
                    continue;
                }
                try (InputStream in = Files.newInputStream(file)) {
                    String sum = copy(in, target, artifact);
                    if (sum.equals(artifact.sha256())) {
                        err.println("  " + artifact.fileName() + "  " + size(artifact.bytes()) + "  from " + directory);
                        err.flush();
                        return;
                    }
                }
                err.println("  " + file + " is skipped: its SHA-256 is wrong");
            }
        }
        if (offline) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "'" + artifact.fileName() + "' of " + size(artifact.bytes()) + " and with SHA-256 "
                            + artifact.sha256() + " is not in " + local,
                    "fetch it from " + repository + "/" + artifact.path() + ", or omit --from");
        }
        download(artifact, target);
    }

    private void download(Artifact artifact, Path target) throws IOException {
        URI address;
        try {
            address = URI.create(repository + "/" + artifact.path());
        } catch (IllegalArgumentException e) {
            throw ServingException.invalidArgument("'" + repository + "' is not the address of a repository");
        }
        String other = "name a mirror with --repository or NEREID_MAVEN_REPOSITORY, or a directory with --from";
        String sum;
        try (InputStream in = open(address, other)) {
            sum = copy(in, target, artifact);
        } catch (IOException e) {
            throw ServingException.wrap(ErrorCode.UNAVAILABLE, "cannot fetch " + address + ": " + text(e), other, e);
        }
        if (!sum.equals(artifact.sha256())) {
            throw ServingException.of(
                    ErrorCode.DATA_LOSS,
                    "the content of " + address + " is not the expected file: its SHA-256 is " + sum + " (expected: "
                            + artifact.sha256() + ")",
                    "try again; if it happens again, do not trust this repository and " + other);
        }
    }

    private static InputStream open(URI address, String other) throws IOException {
        String scheme = String.valueOf(address.getScheme()).toLowerCase(Locale.ROOT);
        if (scheme.equals("file")) {
            return Files.newInputStream(Path.of(address));
        }
        if (!scheme.equals("https") && !scheme.equals("http")) {
            throw ServingException.invalidArgument(
                    "'" + address + "' is not an address to fetch from (expected: https://, http:// or file://)",
                    other);
        }
        HttpClient client = HttpClient.newBuilder()
                .connectTimeout(PATIENCE)
                .followRedirects(HttpClient.Redirect.NORMAL)
                .proxy(java.net.ProxySelector.getDefault())
                .build();
        try {
            HttpResponse<InputStream> response = client.send(
                    HttpRequest.newBuilder(address).timeout(PATIENCE).build(),
                    HttpResponse.BodyHandlers.ofInputStream());
            if (response.statusCode() != 200) {
                response.body().close();
                throw ServingException.of(
                        ErrorCode.UNAVAILABLE, "cannot fetch " + address + ": status " + response.statusCode(), other);
            }
            return response.body();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted", e);
        }
    }

    /** Copies a library, shows the progress, and returns the SHA-256 of the content. */
    private String copy(InputStream in, Path target, Artifact artifact) throws IOException {
        MessageDigest digest;
        try {
            digest = MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
        byte[] buffer = new byte[1 << 16];
        long done = 0;
        long from = clock.nanos();
        long shown = from;
        try (OutputStream out = Files.newOutputStream(target)) {
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                digest.update(buffer, 0, n);
                out.write(buffer, 0, n);
                done += n;
                if (done > artifact.bytes()) {
                    throw new IOException("the file is larger than the expected " + artifact.bytes() + " bytes");
                }
                long now = clock.nanos();
                if (terminal && now - shown >= 200_000_000L) {
                    shown = now;
                    show(artifact, done, now - from, false);
                }
            }
        }
        long took = clock.nanos() - from;
        // a log gets one line of what took long, and no bars
        if (terminal ? done > 1 << 20 : took >= 5_000_000_000L) {
            show(artifact, done, took, true);
        }
        return HexFormat.of().formatHex(digest.digest());
    }

    private void show(Artifact artifact, long done, long nanos, boolean last) {
        int percent = (int) (100 * done / Math.max(1, artifact.bytes()));
        String bar = "#".repeat(percent / 5) + ".".repeat(20 - percent / 5);
        String rate = nanos == 0 ? "" : "  " + DownloadProgress.rate(done, nanos);
        if (terminal) {
            String line = "  " + artifact.fileName() + "  [" + bar + "] " + percent + " % of " + size(artifact.bytes())
                    + rate;
            err.print("\r\u001b[K" + line + (last ? System.lineSeparator() : ""));
        } else {
            err.println("  " + artifact.fileName() + ", " + size(done) + rate);
        }
        err.flush();
    }

    /** Formats a size for display. */
    static String size(long bytes) {
        return bytes < 1_000_000
                ? String.format(Locale.ROOT, "%.0f kB", bytes / 1e3)
                : String.format(Locale.ROOT, "%.1f MB", bytes / 1e6);
    }

    /**
     * Checks a plugin's libraries by name and size; by name alone when files of them are unpacked beside the jars, which are then
     * smaller. Returns what is wrong with them, or null.
     */
    static @Nullable String damage(PluginManifest plugin, Path directory) {
        boolean unpacked = PluginDirectories.unpacked(directory) != null;
        for (Artifact artifact : plugin.artifacts()) {
            Path file = directory.resolve(artifact.fileName());
            try {
                if (!Files.isRegularFile(file)) {
                    return artifact.fileName() + " is missing";
                }
                if (!unpacked && Files.size(file) != artifact.bytes()) {
                    return artifact.fileName() + " has " + Files.size(file) + " bytes (expected: " + artifact.bytes()
                            + ")";
                }
            } catch (IOException e) {
                return artifact.fileName() + " cannot be read";
            }
        }
        return null;
    }
}
