// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import java.io.IOException;
import java.io.InputStream;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.JarURLConnection;
import java.net.MalformedURLException;
import java.net.URI;
import java.net.URL;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.zip.CRC32;
import org.jspecify.annotations.Nullable;

/**
 * ONNX Runtime's shared libraries, unpacked once per user instead of at every start, which saves a few hundred
 * milliseconds. Code is loaded from the cache, so a directory that another user may write to is never trusted, and the
 * checksums are verified at every start. Confined to the thread that starts ONNX Runtime.
 */
final class OrtLibrary {
    static final String PATH_PROPERTY = "onnxruntime.native.path";
    static final String TELEMETRY_SWITCH = "ORT_DISABLE_TELEMETRY";

    private static final Logger LOG = System.getLogger(OrtLibrary.class.getName());
    static final String VERSION = "1.28.0";

    /** The plugin with ONNX Runtime's GPU build. */
    static final String PLUGIN = "onnxruntime-cuda";

    /** The system property with the directory of the plugin {@link #PLUGIN}, set before the first model is loaded. */
    static final String PLUGIN_PROPERTY = "nereid.onnxruntime.plugin";

    /** The jar that a plugin has in the place of the one on the class path: the same classes, and other native libraries. */
    static final String PLUGIN_JAR = "onnxruntime_gpu-" + VERSION + ".jar";

    private static final List<String> NAMES = List.of("onnxruntime", "onnxruntime4j_jni");

    /** The execution providers of the GPU build, which ONNX Runtime opens in the directory of its own library. */
    private static final List<String> PROVIDERS =
            List.of("onnxruntime_providers_shared", "onnxruntime_providers_cuda", "onnxruntime_providers_tensorrt");

    private static final Set<PosixFilePermission> OTHERS_WRITE =
            Set.of(PosixFilePermission.GROUP_WRITE, PosixFilePermission.OTHERS_WRITE);

    /** As large as is read at once. */
    private static final int BUFFER = 256 << 10;

    private final Path cacheRoot;
    private final @Nullable Path plugin;

    /** Libraries of the class path kept under {@code cacheRoot/nereid}. */
    OrtLibrary(Path cacheRoot) {
        this(cacheRoot, null);
    }

    /** Libraries of the plugin in a directory; those of the class path for null. */
    OrtLibrary(Path cacheRoot, @Nullable Path plugin) {
        this.cacheRoot = cacheRoot;
        this.plugin = plugin;
    }

    /** Libraries kept in the user's cache directory. */
    static OrtLibrary ofUser() {
        String xdg = System.getenv("XDG_CACHE_HOME");
        String directory = System.getProperty(PLUGIN_PROPERTY);
        return new OrtLibrary(
                xdg != null && xdg.startsWith("/")
                        ? Path.of(xdg)
                        : Path.of(System.getProperty("user.home", "?"), ".cache"),
                directory == null ? null : Path.of(directory));
    }

    /** Whether these libraries have execution providers for GPUs. Loads nothing. */
    boolean forGpus() {
        return plugin != null || resource(System.mapLibraryName(PROVIDERS.get(1))) != null;
    }

    /** The directory for TensorRT's engines of models that do not name one. */
    Path engines() {
        return cacheRoot.resolve("nereid").resolve("tensorrt");
    }

    /** One library inside the jar. */
    private record Packed(String fileName, URL url, long size, long crc) {}

    /**
     * The directory with the unpacked libraries, or null when ONNX Runtime must unpack them itself.
     *
     * @throws IllegalStateException when the packaged ONNX Runtime would send telemetry to its vendor
     */
    @Nullable Path directory() {
        Path unpacked = plugin == null ? null : plugin.resolve("native");
        if (unpacked != null && Files.isRegularFile(unpacked.resolve(System.mapLibraryName(NAMES.get(0))))) {
            return unpacked;
        }
        List<Packed> packed = packed();
        if (plugin != null && packed.isEmpty()) {
            throw new IllegalStateException("the plugin " + PLUGIN + " in " + plugin
                    + " has no libraries of ONNX Runtime "
                    + VERSION + " for " + platform() + " (expected: " + PLUGIN_JAR + ", on linux-x64); install it again"
                    + " with nereid plugins install " + PLUGIN + " --force, or remove it");
        }
        if (packed.isEmpty() || (plugin == null && !cacheRoot.isAbsolute())) {
            rejectTelemetry();
            return null;
        }
        try {
            CRC32 all = new CRC32();
            for (Packed p : packed) {
                all.update((p.fileName + p.size + ':' + p.crc + ';').getBytes(StandardCharsets.UTF_8));
            }
            Path home = cacheRoot.resolve("nereid");
            Path target = home.resolve(String.format(
                    Locale.ROOT,
                    "%s-%s-%s-%08x",
                    packed.size() > NAMES.size() ? "onnxruntime_gpu" : "onnxruntime",
                    VERSION,
                    platform(),
                    all.getValue()));
            if (isPrivate(target) && intact(target, packed)) {
                return target;
            }
            Files.createDirectories(
                    home, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
            if (!isPrivate(home) || !isPrivate(cacheRoot)) {
                LOG.log(Level.WARNING, "native libraries are not cached: other users can write to " + home);
                throw new IOException("other users can write to " + home);
            }
            unpack(packed, home, target);
            if (isPrivate(target) && intact(target, packed)) {
                return target;
            }
        } catch (IOException | UnsupportedOperationException e) {
            LOG.log(Level.DEBUG, "native libraries are not cached under " + cacheRoot, e);
        }
        if (plugin != null) {
            // ONNX Runtime would unpack those of the class path by itself, which are not the plugin's.
            throw new IllegalStateException("the libraries of the plugin " + PLUGIN + " (650 MB) cannot be unpacked in "
                    + cacheRoot.resolve("nereid") + "; it must be writable for this user alone");
        }
        rejectTelemetry();
        return null;
    }

    private static void unpack(List<Packed> packed, Path home, Path target) throws IOException {
        Path fresh = Files.createTempDirectory(home, ".unpacking-");
        try {
            for (Packed p : packed) {
                try (InputStream in = p.url.openStream()) {
                    Files.copy(in, fresh.resolve(p.fileName));
                }
            }
            rejectTelemetry(fresh.resolve(packed.get(0).fileName));
            if (Files.exists(target, LinkOption.NOFOLLOW_LINKS)) {
                // Damaged, or writable by others: move it away. A rename over a non-empty directory fails.
                Path old = Files.createTempDirectory(home, ".damaged-");
                Files.move(target, old.resolve("old"), StandardCopyOption.ATOMIC_MOVE);
                delete(old);
            }
            Files.move(fresh, target, StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            // Another process may have put the directory in place first; the caller checks again.
            LOG.log(Level.DEBUG, "could not put " + target + " in place", e);
        } finally {
            delete(fresh);
        }
    }

    private static void delete(Path directory) throws IOException {
        if (!Files.exists(directory, LinkOption.NOFOLLOW_LINKS)) {
            return;
        }
        List<Path> found = new ArrayList<>();
        try (var walk = Files.walk(directory)) {
            walk.forEach(found::add);
        }
        for (int i = found.size() - 1; i >= 0; i--) {
            Files.deleteIfExists(found.get(i));
        }
    }

    /** Whether only this user and root can change the directory's contents. */
    private static boolean isPrivate(Path directory) throws IOException {
        if (!Files.isDirectory(directory, LinkOption.NOFOLLOW_LINKS)) {
            return false;
        }
        Object owner = Files.getAttribute(directory, "unix:uid", LinkOption.NOFOLLOW_LINKS);
        Object self = Files.getAttribute(Path.of("/proc/self"), "unix:uid");
        if (!owner.equals(self) && !owner.equals(0)) {
            return false;
        }
        Set<PosixFilePermission> permissions = Files.getPosixFilePermissions(directory, LinkOption.NOFOLLOW_LINKS);
        return OTHERS_WRITE.stream().noneMatch(permissions::contains);
    }

    private static boolean intact(Path directory, List<Packed> packed) throws IOException {
        for (Packed p : packed) {
            Path file = directory.resolve(p.fileName);
            if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS) || Files.size(file) != p.size) {
                return false;
            }
            if (checksum(file) != p.crc) {
                return false;
            }
        }
        return true;
    }

    /** Read rather than mapped: the pages of a mapping would count as memory of this process until a collection. */
    private static long checksum(Path file) throws IOException {
        CRC32 crc = new CRC32();
        ByteBuffer buffer = ByteBuffer.allocateDirect(BUFFER);
        try (FileChannel channel = FileChannel.open(file)) {
            while (channel.read(buffer) >= 0) {
                crc.update(buffer.flip());
                buffer.clear();
            }
        }
        return crc.getValue();
    }

    private static ByteBuffer mapped(Path file) throws IOException {
        try (FileChannel channel = FileChannel.open(file)) {
            return channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
        }
    }

    private List<Packed> packed() {
        List<Packed> packed = new ArrayList<>();
        List<String> names = new ArrayList<>(NAMES);
        if (forGpus()) {
            names.addAll(PROVIDERS);
        }
        for (String name : names) {
            String fileName = System.mapLibraryName(name);
            URL url = resource(fileName);
            try {
                if (url == null || !(url.openConnection() instanceof JarURLConnection connection)) {
                    return List.of();
                }
                connection.setUseCaches(false);
                try (JarFile jar = connection.getJarFile()) {
                    JarEntry entry = jar.getJarEntry(connection.getEntryName());
                    packed.add(new Packed(fileName, url, entry.getSize(), entry.getCrc()));
                }
            } catch (IOException e) {
                LOG.log(Level.DEBUG, "cannot read " + url, e);
                return List.of();
            }
        }
        return packed;
    }

    private @Nullable URL resource(String fileName) {
        if (plugin != null) {
            try {
                return URI.create("jar:" + plugin.resolve(PLUGIN_JAR).toUri() + "!/ai/onnxruntime/native/" + platform()
                                + "/" + fileName)
                        .toURL();
            } catch (MalformedURLException e) {
                throw new IllegalStateException(e);
            }
        }
        return ai.onnxruntime.OrtEnvironment.class.getResource("/ai/onnxruntime/native/" + platform() + "/" + fileName);
    }

    /** The folder for this machine's libraries in the jar, such as {@code linux-x64}. */
    static String platform() {
        String os = System.getProperty("os.name", "").toLowerCase(Locale.ROOT);
        String arch = System.getProperty("os.arch", "").toLowerCase(Locale.ROOT);
        String system = os.contains("linux") ? "linux" : os.contains("mac") ? "osx" : os.contains("win") ? "win" : os;
        return system + "-" + (arch.equals("amd64") || arch.equals("x86_64") ? "x64" : arch);
    }

    /** Rejects builds of ONNX Runtime that send telemetry to their vendor as soon as they are loaded. */
    private void rejectTelemetry() {
        URL url = resource(System.mapLibraryName(NAMES.get(0)));
        if (url == null) {
            return;
        }
        try (InputStream in = url.openStream()) {
            rejectTelemetry(ByteBuffer.wrap(in.readAllBytes()));
        } catch (IOException e) {
            LOG.log(Level.DEBUG, "cannot read " + url, e);
        }
    }

    private static void rejectTelemetry(Path library) throws IOException {
        rejectTelemetry(mapped(library));
    }

    private static void rejectTelemetry(ByteBuffer library) {
        if (!"1".equals(System.getenv(TELEMETRY_SWITCH)) && contains(library, TELEMETRY_SWITCH)) {
            throw new IllegalStateException(
                    "this build of ONNX Runtime sends telemetry unless the environment variable " + TELEMETRY_SWITCH
                            + "=1 is set before the server starts (expected: ONNX Runtime " + VERSION + ")");
        }
    }

    /** Whether the text occurs in the bytes. Boyer-Moore-Horspool, since a library has tens of megabytes. */
    static boolean contains(ByteBuffer bytes, String text) {
        byte[] wanted = text.getBytes(StandardCharsets.US_ASCII);
        int last = wanted.length - 1;
        int[] skip = new int[256];
        java.util.Arrays.fill(skip, wanted.length);
        for (int i = 0; i < last; i++) {
            skip[wanted[i] & 0xff] = last - i;
        }
        for (int at = 0; at <= bytes.limit() - wanted.length; ) {
            int i = last;
            while (i >= 0 && bytes.get(at + i) == wanted[i]) {
                i--;
            }
            if (i < 0) {
                return true;
            }
            at += skip[bytes.get(at + last) & 0xff];
        }
        return false;
    }
}
