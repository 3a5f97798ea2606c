// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.options;

import io.nereid.json.FloatStyle;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** The options of the V2 protocol. Immutable. */
public final class V2Options {
    private final String serverName;
    private final String serverVersion;
    private final long maxTensorBytes;
    private final FloatStyle floatStyle;
    private final int offloadBytes;
    private final @Nullable List<Pattern> sharedMemoryKeys;
    private final @Nullable Pattern httpHeaders;
    private final @Nullable Pattern grpcHeaders;
    private final Set<String> furtherServices;
    private final boolean modelUpload;
    private final boolean healthBodies;

    private V2Options(Builder b) {
        serverName = b.serverName;
        serverVersion = b.serverVersion;
        maxTensorBytes = b.maxTensorBytes;
        floatStyle = b.floatStyle;
        offloadBytes = b.offloadBytes;
        sharedMemoryKeys = b.sharedMemoryKeys;
        httpHeaders = b.httpHeaders;
        grpcHeaders = b.grpcHeaders;
        furtherServices = b.furtherServices;
        modelUpload = b.modelUpload;
        healthBodies = b.healthBodies;
    }

    /** The default options of a server that accepts bodies of up to {@code maxBodyBytes}. */
    public static V2Options defaults(String serverVersion, long maxBodyBytes) {
        return builder(serverVersion, maxBodyBytes).build();
    }

    /** A builder with the default options of a server that accepts bodies of up to {@code maxBodyBytes}. */
    public static Builder builder(String serverVersion, long maxBodyBytes) {
        return new Builder(serverVersion, maxBodyBytes);
    }

    /** The server's name in its metadata. */
    public String serverName() {
        return serverName;
    }

    /** The server's version in its metadata. */
    public String serverVersion() {
        return serverVersion;
    }

    /**
     * The largest tensor, in bytes, that a request may hold as JSON or as typed contents. A short text can encode a
     * large tensor, so this limit is separate from the one for bodies.
     */
    public long maxTensorBytes() {
        return maxTensorBytes;
    }

    /** How FP32, FP16 and BF16 values are printed in JSON. */
    public FloatStyle floatStyle() {
        return floatStyle;
    }

    /** Bytes of JSON or of typed contents beyond which work is handed to the codec pool. */
    public int offloadBytes() {
        return offloadBytes;
    }

    /** Keys of shared memory that clients may register; null when they may not register any. */
    public @Nullable List<Pattern> sharedMemoryKeys() {
        return sharedMemoryKeys;
    }

    /** Headers of HTTP requests that are forwarded to models as parameters; null for none. */
    public @Nullable Pattern httpHeaders() {
        return httpHeaders;
    }

    /** Metadata of gRPC calls that is forwarded to models as parameters; null for none. */
    public @Nullable Pattern grpcHeaders() {
        return grpcHeaders;
    }

    /** Further service names that gRPC health answers for: the services of the other protocols. */
    public Set<String> furtherServices() {
        return furtherServices;
    }

    /** Whether a load request may bring files and a configuration of its own, which the server then runs. */
    public boolean modelUpload() {
        return modelUpload;
    }

    /**
     * Whether the answers of {@code /v2/health} and of a model's {@code ready} have a JSON body, as KServe's servers have
     * it; Triton's are empty, and scripts that wait for it compare the whole output of a command with {@code 200}.
     */
    public boolean healthBodies() {
        return healthBodies;
    }

    /** A builder of options. Every method returns this builder. Confined to one thread. */
    public static final class Builder {
        private final String serverVersion;
        private String serverName = "nereid";
        private long maxTensorBytes;
        private FloatStyle floatStyle = FloatStyle.WIDENED;
        private int offloadBytes = 64 << 10;
        private @Nullable List<Pattern> sharedMemoryKeys;
        private @Nullable Pattern httpHeaders;
        private @Nullable Pattern grpcHeaders;
        private Set<String> furtherServices = Set.of();
        private boolean modelUpload;
        private boolean healthBodies = true;

        private Builder(String serverVersion, long maxBodyBytes) {
            this.serverVersion = serverVersion;
            this.maxTensorBytes = Math.max(maxBodyBytes, 1 << 20);
        }

        /** See {@link V2Options#serverName()}. */
        public Builder serverName(String value) {
            serverName = value;
            return this;
        }

        /** See {@link V2Options#maxTensorBytes()}. */
        public Builder maxTensorBytes(long value) {
            maxTensorBytes = value;
            return this;
        }

        /** See {@link V2Options#floatStyle()}. */
        public Builder floatStyle(FloatStyle value) {
            floatStyle = value;
            return this;
        }

        /** See {@link V2Options#offloadBytes()}. */
        public Builder offloadBytes(int value) {
            offloadBytes = value;
            return this;
        }

        /**
         * Allows clients to register system shared memory whose key, without a leading slash, is matched completely by
         * one of the patterns. A client that truncates such memory while it is in use can crash the process (SIGBUS).
         */
        public Builder clientSharedMemory(List<Pattern> keys) {
            sharedMemoryKeys = List.copyOf(keys);
            return this;
        }

        /** Forwards HTTP headers to models as parameters: those in whose name the pattern is found. */
        public Builder forwardHttpHeaders(Pattern pattern) {
            httpHeaders = pattern;
            return this;
        }

        /** Forwards gRPC metadata to models as parameters: entries in whose name the pattern is found. */
        public Builder forwardGrpcHeaders(Pattern pattern) {
            grpcHeaders = pattern;
            return this;
        }

        /** Makes gRPC health answer for the services of other protocols, too. */
        public Builder furtherServices(Set<String> names) {
            furtherServices = Set.copyOf(names);
            return this;
        }

        /** See {@link V2Options#modelUpload()}. */
        public Builder modelUpload(boolean allowed) {
            modelUpload = allowed;
            return this;
        }

        /** See {@link V2Options#healthBodies()}. */
        public Builder healthBodies(boolean value) {
            healthBodies = value;
            return this;
        }

        /** Builds the options. */
        public V2Options build() {
            return new V2Options(this);
        }
    }
}
