// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The stretches of system shared memory that clients have registered. They are mapped without copies; one that is
 * unregistered while requests use it stays mapped until the last of them is done. What a client changes while its request
 * runs is its own affair, but for the lengths inside BYTES tensors, which are copied before they are trusted. Thread-safe
 * by one lock, held only to look up, and to map.
 */
final class SharedMemory {
    private static final String RESERVED_PREFIX = "triton_python_backend_shm_region_";
    private static final int MOST = Integer.MAX_VALUE - 64;

    /**
     * A registered stretch.
     *
     * @param name the client's name for it
     * @param key the object's name
     * @param offset where in the object it begins
     * @param byteSize its size
     */
    record Region(String name, String key, long offset, long byteSize) {}

    private record Mapping(Region region, MemoryRegion memory) {}

    private final Path directory;
    private final @Nullable List<Pattern> keys;

    @GuardedBy("this")
    private final Map<String, Mapping> mappings = new TreeMap<>();

    /**
     * A registry of the objects in a directory.
     *
     * @param keys what clients may register; null when they may not register anything
     */
    SharedMemory(Path directory, @Nullable List<Pattern> keys) {
        this.directory = directory;
        this.keys = keys;
    }

    boolean enabled() {
        return keys != null;
    }

    private void checkEnabled() {
        if (keys == null) {
            throw ServingException.of(
                    ErrorCode.UNIMPLEMENTED,
                    "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.");
        }
    }

    /**
     * Maps a stretch.
     *
     * @throws ServingException UNIMPLEMENTED when clients may not; ALREADY_EXISTS, PERMISSION_DENIED or INVALID_ARGUMENT
     */
    synchronized void register(String name, String key, long offset, long byteSize) {
        checkEnabled();
        if (name.isEmpty()) {
            throw ServingException.invalidArgument("a shared memory region needs a name");
        }
        if (mappings.containsKey(name)) {
            throw ServingException.of(
                    ErrorCode.ALREADY_EXISTS, "shared memory region '" + name + "' already in manager");
        }
        Path file = file(name, key);
        if (offset < 0 || byteSize <= 0 || byteSize > MOST || offset > Long.MAX_VALUE - byteSize) {
            throw invalid("region '" + name + "' of byte_size " + byteSize + " at offset " + offset
                    + " (expected: from 1 byte to less than 2 GiB, and an offset of 0 or more)");
        }
        mappings.put(
                name, new Mapping(new Region(name, key, offset, byteSize), map(name, key, file, offset, byteSize)));
    }

    private static ServingException invalid(String why) {
        return ServingException.invalidArgument("failed to register shared memory region: invalid args", why);
    }

    private Path file(String name, String key) {
        String bare = key.startsWith("/") ? key.substring(1) : key;
        String refused = "cannot register shared memory region '" + name + "' - invalid shm key '" + key + "'";
        if (bare.startsWith(RESERVED_PREFIX)) {
            throw ServingException.invalidArgument(
                    refused + " as the key contains the reserved prefix '" + RESERVED_PREFIX + "'");
        }
        if (bare.isEmpty() || bare.equals(".") || bare.equals("..") || bare.indexOf('/') >= 0) {
            throw ServingException.invalidArgument(refused, "a key is one name, with or without a leading slash");
        }
        boolean allowed = false;
        for (Pattern pattern : keys == null ? List.<Pattern>of() : keys) {
            allowed |= pattern.matcher(bare).matches();
        }
        if (!allowed) {
            throw ServingException.of(
                    ErrorCode.PERMISSION_DENIED, refused + " as it is not among the keys that this server allows");
        }
        try {
            return directory.resolve(bare);
        } catch (InvalidPathException e) {
            throw ServingException.invalidArgument(refused);
        }
    }

    private static MemoryRegion map(String name, String key, Path file, long offset, long byteSize) {
        ServingException unable =
                ServingException.invalidArgument("Unable to open shared memory region: '" + key + "'");
        if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
            throw unable;
        }
        try (FileChannel channel =
                FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS)) {
            long size = channel.size();
            if (offset + byteSize > size) {
                throw invalid("region '" + name + "' ends at byte " + (offset + byteSize) + " of '" + key
                        + "', which has " + size);
            }
            MappedByteBuffer mapped = channel.map(MapMode.READ_WRITE, offset, byteSize);
            return MemoryRegion.ofForeign(mapped, () -> {});
        } catch (IOException e) {
            throw unable;
        }
    }

    /** Forgets a region, or all when the name is empty; one that is not registered is none to forget. */
    synchronized void unregister(String name) {
        checkEnabled();
        if (name.isEmpty()) {
            mappings.values().forEach(mapping -> mapping.memory.release());
            mappings.clear();
            return;
        }
        Mapping mapping = mappings.remove(name);
        if (mapping != null) {
            mapping.memory.release();
        }
    }

    /** A region, or all when the name is empty, by name. */
    synchronized List<Region> status(String name) {
        List<Region> regions = new ArrayList<>();
        if (!name.isEmpty()) {
            regions.add(find(name).region);
        } else {
            mappings.values().forEach(mapping -> regions.add(mapping.region));
        }
        return regions;
    }

    @GuardedBy("this")
    private Mapping find(String name) {
        Mapping mapping = mappings.get(name);
        if (mapping == null) {
            throw ServingException.of(ErrorCode.NOT_FOUND, "Unable to find shared memory region: '" + name + "'");
        }
        return mapping;
    }

    /** The memory of a region, with a count for the caller, when the stretch lies in it. */
    private synchronized MemoryRegion acquire(String region, long offset, long byteSize) {
        checkEnabled();
        MemoryRegion memory = find(region).memory;
        if (offset < 0 || offset > memory.size()) {
            throw ServingException.invalidArgument("Invalid offset for shared memory region: '" + region + "'");
        }
        if (byteSize < 0 || byteSize > memory.size() - offset) {
            throw ServingException.invalidArgument(
                    "Invalid offset + byte size for shared memory region: '" + region + "'");
        }
        return memory.retain();
    }

    /** An input that lies in shared memory; the caller owns it. */
    Tensor input(String name, DataType type, Shape shape, String region, long offset, long byteSize, String model) {
        MemoryRegion memory = acquire(region, offset, byteSize);
        try {
            if (type.isFixedSize()) {
                return ByteElements.view(name, type, shape, memory, (int) offset, (int) byteSize, model);
            }
            MemoryRegion copy = MemoryRegion.allocate((int) byteSize);
            try {
                copy.setBytes(0, memory, (int) offset, (int) byteSize);
                return ByteElements.view(name, type, shape, copy, 0, (int) byteSize, model);
            } finally {
                copy.release();
            }
        } finally {
            memory.release();
        }
    }

    /** The place for an output; the caller closes it. */
    SharedOutput output(String output, String region, long offset, long byteSize) {
        return new SharedOutput(output, region, (int) offset, (int) byteSize, acquire(region, offset, byteSize));
    }
}
