// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.codec;

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
 * The regions of system shared memory that clients have registered. Tensors in them are used without a copy. A region
 * that is unregistered while requests use it stays mapped until the last of them has ended.
 *
 * <p>A client can change the memory while its request runs. For numbers that affects only its own result; BYTES tensors
 * contain lengths, which could lead out of the region after they were checked, so they are copied first.
 *
 * <p>Thread-safe: one lock, held for lookups and for mapping.
 */
public final class SharedMemoryManager {
    private static final String RESERVED_PREFIX = "triton_python_backend_shm_region_";
    private static final int MOST = Integer.MAX_VALUE - 64;

    /**
     * A registered region.
     *
     * @param name the name that the client gave it
     * @param key the name of the shared memory object
     * @param offset where the region begins in the object
     * @param byteSize the size of the region
     */
    public record Region(String name, String key, long offset, long byteSize) {}

    private record Mapping(Region region, MemoryRegion memory) {}

    private final Path directory;
    private final @Nullable List<Pattern> keys;

    @GuardedBy("this") private final Map<String, Mapping> mappings = new TreeMap<>();

    /**
     * Creates a manager for the shared memory objects in a directory.
     *
     * @param keys patterns of the keys that clients may register; null to allow none
     */
    SharedMemoryManager(Path directory, @Nullable List<Pattern> keys) {
        this.directory = directory;
        this.keys = keys;
    }

    public boolean enabled() {
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
     * Maps and registers a region.
     *
     * @throws ServingException UNIMPLEMENTED when shared memory is disabled; ALREADY_EXISTS, PERMISSION_DENIED or
     *     INVALID_ARGUMENT
     */
    public synchronized void register(String name, String key, long offset, long byteSize) {
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
            return MemoryRegion.wrap(mapped, () -> {});
        } catch (IOException e) {
            throw unable;
        }
    }

    /** Unregisters a region, or all regions when the name is empty; an unknown name is ignored. */
    public synchronized void unregister(String name) {
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

    /** The region of a name, or all regions, sorted by name, when the name is empty. */
    public synchronized List<Region> status(String name) {
        List<Region> regions = new ArrayList<>();
        if (!name.isEmpty()) {
            regions.add(find(name).region);
        } else {
            mappings.values().forEach(mapping -> regions.add(mapping.region));
        }
        return regions;
    }

    @GuardedBy("this") private Mapping find(String name) {
        Mapping mapping = mappings.get(name);
        if (mapping == null) {
            throw ServingException.of(ErrorCode.NOT_FOUND, "Unable to find shared memory region: '" + name + "'");
        }
        return mapping;
    }

    /** The memory of a region, retained for the caller, once the requested range has been found to lie in it. */
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

    /** An input whose data lies in shared memory; the caller owns it. */
    Tensor input(String name, DataType type, Shape shape, String region, long offset, long byteSize, String model) {
        MemoryRegion memory = acquire(region, offset, byteSize);
        try {
            if (type.isFixedSize()) {
                return RawTensors.view(name, type, shape, memory, (int) offset, (int) byteSize, model);
            }
            MemoryRegion copy = MemoryRegion.allocate((int) byteSize);
            try {
                copy.setBytes(0, memory, (int) offset, (int) byteSize);
                return RawTensors.view(name, type, shape, copy, 0, (int) byteSize, model);
            } finally {
                copy.release();
            }
        } finally {
            memory.release();
        }
    }

    /** The range that an output is to be written to; the caller closes it. */
    SharedMemoryOutput output(String output, String region, long offset, long byteSize) {
        return new SharedMemoryOutput(output, region, (int) offset, (int) byteSize, acquire(region, offset, byteSize));
    }
}
