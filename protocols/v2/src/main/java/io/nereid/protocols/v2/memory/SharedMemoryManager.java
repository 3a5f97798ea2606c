// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.memory;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.device.Devices;
import io.nereid.device.SharedDeviceMemory;
import io.nereid.protocols.v2.memory.SharedRegion.CudaRegion;
import io.nereid.protocols.v2.memory.SharedRegion.SystemRegion;
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
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The regions of memory that clients have registered: system shared memory, and CUDA shared memory on a server with GPUs.
 * Their names are one name space. A region that is unregistered while requests use it stays until the last of them has
 * ended.
 *
 * <p>Tensors in system shared memory are used without a copy. A client can change the memory while its request runs. For
 * numbers that affects only its own result; BYTES tensors contain lengths, which could lead out of the region after they
 * were checked, so they are copied first. Tensors in CUDA shared memory are copied, on the thread of their GPU.
 *
 * <p>Thread-safe: one lock, held for lookups and for mapping; never for a call of a GPU's driver.
 */
public final class SharedMemoryManager {
    private static final String RESERVED_PREFIX = "triton_python_backend_shm_region_";
    private static final int MOST = Integer.MAX_VALUE - 64;

    private final Path directory;
    private final @Nullable List<Pattern> keys;
    private final @Nullable Devices devices;

    @GuardedBy("this") private final Map<String, SharedRegion> regions = new TreeMap<>();

    /** The names of CUDA regions that are being opened. */
    @GuardedBy("this") private final Set<String> opening = new HashSet<>();

    /**
     * Creates a manager for the shared memory objects in a directory.
     *
     * @param keys patterns of the keys that clients may register; null to allow no shared memory of any kind
     * @param devices the GPUs whose memory clients may share; null without one
     */
    public SharedMemoryManager(Path directory, @Nullable List<Pattern> keys, @Nullable Devices devices) {
        this.directory = directory;
        this.keys = keys;
        this.devices = devices;
    }

    public boolean enabled() {
        return keys != null;
    }

    /** Whether clients may share memory of GPUs. */
    public boolean cudaEnabled() {
        return keys != null && devices != null;
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
        checkFree(name);
        Path file = file(name, key);
        if (offset < 0 || byteSize <= 0 || byteSize > MOST || offset > Long.MAX_VALUE - byteSize) {
            throw invalid("region '" + name + "' of byte_size " + byteSize + " at offset " + offset
                    + " (expected: from 1 byte to less than 2 GiB, and an offset of 0 or more)");
        }
        regions.put(name, new SystemRegion(name, key, offset, byteSize, map(name, key, file, offset, byteSize)));
    }

    @GuardedBy("this") private void checkFree(String name) {
        if (regions.containsKey(name) || opening.contains(name)) {
            throw ServingException.of(
                    ErrorCode.ALREADY_EXISTS, "shared memory region '" + name + "' already in manager");
        }
    }

    /**
     * Opens and registers a region of a GPU's memory. Does not block: the stage is completed on the thread of the GPU.
     *
     * @param handle the bytes of a {@code cudaIpcMemHandle_t}
     * @return fails with UNIMPLEMENTED when shared memory is disabled, or there are no GPUs; ALREADY_EXISTS,
     *     INVALID_ARGUMENT, or UNAVAILABLE when the GPU is lost
     */
    public CompletionStage<Void> registerCuda(String name, byte[] handle, long device, long byteSize) {
        try {
            Devices all = devices;
            if (all == null) {
                throw noCuda(name);
            }
            checkEnabled();
            if (name.isEmpty()) {
                throw ServingException.invalidArgument(
                        "'region name' is necessary to register cuda shared memory region");
            }
            if (handle.length != all.transfers().handleBytes()) {
                throw ServingException.invalidArgument(
                        "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t",
                        "it has " + handle.length + " bytes instead of "
                                + all.transfers().handleBytes());
            }
            if (device < 0 || device >= all.all().size()) {
                throw invalid("there is no GPU with device_id " + device + "; this server has "
                        + all.all().size() + ", from 0");
            }
            if (byteSize <= 0) {
                throw invalid(name, "its byte_size is " + byteSize + " (expected: at least 1)");
            }
            return open(all, name, handle, (int) device, byteSize);
        } catch (ServingException e) {
            return CompletableFuture.failedFuture(e);
        }
    }

    private CompletionStage<Void> open(Devices all, String name, byte[] handle, int device, long byteSize) {
        synchronized (this) {
            checkFree(name);
            opening.add(name);
        }
        CompletableFuture<Void> done = new CompletableFuture<>();
        try {
            all.transfers().thread(device).execute(() -> {
                try {
                    add(name, device, byteSize, memory(all, name, handle, device, byteSize));
                    done.complete(null);
                } catch (RuntimeException | OutOfMemoryError e) {
                    notOpened(name);
                    done.completeExceptionally(e);
                }
            });
        } catch (RejectedExecutionException e) {
            notOpened(name);
            done.completeExceptionally(ending());
        }
        return done;
    }

    private static SharedDeviceMemory memory(Devices all, String name, byte[] handle, int device, long byteSize) {
        SharedDeviceMemory memory;
        try {
            memory = all.transfers().openShared(device, handle);
        } catch (ServingException e) {
            throw e.code() == ErrorCode.INVALID_ARGUMENT ? invalid(String.valueOf(e.getMessage())) : e;
        }
        if (byteSize > memory.bytes()) {
            memory.release();
            throw invalid(
                    name, "its byte_size is " + byteSize + ", and the memory of the handle has " + memory.bytes());
        }
        return memory;
    }

    private synchronized void add(String name, int device, long byteSize, SharedDeviceMemory memory) {
        opening.remove(name);
        regions.put(name, new CudaRegion(name, device, byteSize, memory));
    }

    private synchronized void notOpened(String name) {
        opening.remove(name);
    }

    private static ServingException noCuda(String name) {
        return ServingException.of(
                ErrorCode.UNIMPLEMENTED,
                "failed to register CUDA shared memory region: '" + name + "', GPUs not supported",
                "register system shared memory, or send tensors in the binary data format");
    }

    private static ServingException ending() {
        return ServingException.of(ErrorCode.UNAVAILABLE, "the server is shutting down", "retry at another server");
    }

    private static ServingException invalid(String why) {
        return ServingException.invalidArgument("failed to register shared memory region: invalid args", why);
    }

    private static ServingException invalid(String name, String why) {
        return ServingException.invalidArgument(
                "failed to register shared memory region '" + name + "': invalid args", why);
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

    /** Unregisters a system region, or all of them when the name is empty; a name of no such region is ignored. */
    public void unregister(String name) {
        checkEnabled();
        removed(SystemRegion.class, name).forEach(SharedRegion::release);
    }

    /**
     * Unregisters a CUDA region, or all of them when the name is empty; a name of no such region is ignored. Does not
     * block: the stage is completed when the memory of regions that no request uses has been given back.
     */
    public CompletionStage<Void> unregisterCuda(String name) {
        return CompletableFuture.allOf(removed(CudaRegion.class, name)
                .map(region -> {
                    region.release();
                    return ended(region.thread());
                })
                .toArray(CompletableFuture[]::new));
    }

    /** Completed when the thread has done what it was given before. */
    private static CompletableFuture<Void> ended(Executor thread) {
        CompletableFuture<Void> ended = new CompletableFuture<>();
        try {
            thread.execute(() -> ended.complete(null));
        } catch (RejectedExecutionException e) {
            ended.complete(null);
        }
        return ended;
    }

    private synchronized <R extends SharedRegion> Stream<R> removed(Class<R> kind, String name) {
        List<R> removed = of(kind, name);
        removed.forEach(region -> regions.remove(region.name()));
        return removed.stream();
    }

    /** The regions of a kind by name, or the one with the name. */
    private synchronized <R extends SharedRegion> List<R> of(Class<R> kind, String name) {
        List<R> found = new ArrayList<>();
        for (SharedRegion region : regions.values()) {
            if (kind.isInstance(region) && (name.isEmpty() || region.name().equals(name))) {
                found.add(kind.cast(region));
            }
        }
        return found;
    }

    /**
     * The system region of a name, or all of them, sorted by name, when the name is empty.
     *
     * @throws ServingException NOT_FOUND
     */
    public List<SystemRegion> status(String name) {
        List<SystemRegion> found = of(SystemRegion.class, name);
        if (!name.isEmpty() && found.isEmpty()) {
            throw unknown(name, "system", "CUDA");
        }
        return found;
    }

    /**
     * The CUDA region of a name, or all of them, sorted by name, when the name is empty.
     *
     * @throws ServingException NOT_FOUND
     */
    public List<CudaRegion> cudaStatus(String name) {
        List<CudaRegion> found = of(CudaRegion.class, name);
        if (!name.isEmpty() && found.isEmpty()) {
            throw unknown(name, "CUDA", "system");
        }
        return found;
    }

    private synchronized ServingException unknown(String name, String kind, String other) {
        return ServingException.of(
                ErrorCode.NOT_FOUND,
                regions.containsKey(name)
                        ? "The region named '" + name + "' is registered as " + other + " shared memory, not " + kind
                                + " shared memory"
                        : "Unable to find " + kind.toLowerCase(Locale.ROOT) + " shared memory region: '" + name + "'");
    }

    /** A region, retained for the caller, once the requested range has been found to lie in it. */
    private synchronized SharedRegion acquire(String name, long offset, long byteSize) {
        checkEnabled();
        SharedRegion region = regions.get(name);
        if (region == null) {
            throw ServingException.of(ErrorCode.NOT_FOUND, "Unable to find shared memory region: '" + name + "'");
        }
        if (offset < 0 || offset > region.byteSize()) {
            throw ServingException.invalidArgument("Invalid offset for shared memory region: '" + name + "'");
        }
        if (byteSize < 0 || byteSize > region.byteSize() - offset) {
            throw ServingException.invalidArgument(
                    "Invalid offset + byte size for shared memory region: '" + name + "'");
        }
        region.retain();
        return region;
    }

    /**
     * An input whose data lies in shared memory; the caller owns it.
     *
     * @param cuda takes over the copy that is still to be made of a tensor in memory of a GPU
     */
    public Tensor input(
            String name,
            DataType type,
            Shape shape,
            String region,
            long offset,
            long byteSize,
            String model,
            CudaInputs cuda) {
        SharedRegion found = acquire(region, offset, byteSize);
        boolean kept = false;
        try {
            if (found instanceof SystemRegion system) {
                return mapped(name, type, shape, system.memory(), (int) offset, (int) byteSize, model);
            }
            if (byteSize > MOST) {
                throw ServingException.invalidArgument("input '" + name + "' has a byte_size of " + byteSize
                        + " in shared memory region '" + region + "' (expected: less than 2 GiB)");
            }
            Tensor tensor = RawTensors.unread(name, type, shape, (int) byteSize, model);
            if (byteSize > 0) {
                cuda.add(tensor, (CudaRegion) found, offset, model);
                kept = true;
            }
            return tensor;
        } finally {
            if (!kept) {
                found.release();
            }
        }
    }

    private static Tensor mapped(
            String name, DataType type, Shape shape, MemoryRegion memory, int offset, int byteSize, String model) {
        if (type.isFixedSize()) {
            return RawTensors.view(name, type, shape, memory, offset, byteSize, model);
        }
        MemoryRegion copy = MemoryRegion.allocate(byteSize);
        try {
            copy.setBytes(0, memory, offset, byteSize);
            return RawTensors.view(name, type, shape, copy, 0, byteSize, model);
        } finally {
            copy.release();
        }
    }

    /** The range that an output is to be written to; the caller closes it. */
    public SharedMemoryOutput output(String output, String region, long offset, long byteSize) {
        return new SharedMemoryOutput(output, acquire(region, offset, byteSize), offset, byteSize);
    }
}
