// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.json.FloatStyle;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** What an operator may choose about the protocol. Immutable. */
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
    private final Map<ApiGroup, Restriction> httpRestrictions;
    private final Map<ApiGroup, Restriction> grpcRestrictions;

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
        httpRestrictions = Restriction.copy(b.httpRestrictions);
        grpcRestrictions = Restriction.copy(b.grpcRestrictions);
    }

    /** The usual choices for a server that takes bodies of up to {@code maxBodyBytes}. */
    public static V2Options defaults(String serverVersion, long maxBodyBytes) {
        return builder(serverVersion, maxBodyBytes).build();
    }

    /** The usual choices for a server that takes bodies of up to {@code maxBodyBytes}, to be changed. */
    public static Builder builder(String serverVersion, long maxBodyBytes) {
        return new Builder(serverVersion, maxBodyBytes);
    }

    /** What server metadata calls this server. */
    public String serverName() {
        return serverName;
    }

    /** Its version. */
    public String serverVersion() {
        return serverVersion;
    }

    /**
     * The largest tensor, in bytes, that a request may give as JSON or as typed contents; a short text can stand for a
     * large tensor, so this limit is apart from that on bodies.
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
    @Nullable List<Pattern> sharedMemoryKeys() {
        return sharedMemoryKeys;
    }

    /** Headers of HTTP requests that models get as parameters; null for none. */
    @Nullable Pattern httpHeaders() {
        return httpHeaders;
    }

    /** Metadata of gRPC calls that models get as parameters; null for none. */
    @Nullable Pattern grpcHeaders() {
        return grpcHeaders;
    }

    /** Names that the health service knows besides its own: those of the services that other protocols bring. */
    Set<String> furtherServices() {
        return furtherServices;
    }

    /** What REST calls of a group must bring. */
    Map<ApiGroup, Restriction> httpRestrictions() {
        return httpRestrictions;
    }

    /** What gRPC calls of a group must bring. */
    Map<ApiGroup, Restriction> grpcRestrictions() {
        return grpcRestrictions;
    }

    /** Collects the choices. Every method returns this. Confined to one thread. */
    public static final class Builder {
        private final String serverVersion;
        private final EnumMap<ApiGroup, Restriction> httpRestrictions = new EnumMap<>(ApiGroup.class);
        private final EnumMap<ApiGroup, Restriction> grpcRestrictions = new EnumMap<>(ApiGroup.class);
        private String serverName = "nereid";
        private long maxTensorBytes;
        private FloatStyle floatStyle = FloatStyle.WIDENED;
        private int offloadBytes = 64 << 10;
        private @Nullable List<Pattern> sharedMemoryKeys;
        private @Nullable Pattern httpHeaders;
        private @Nullable Pattern grpcHeaders;
        private Set<String> furtherServices = Set.of();

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
         * Lets clients pass tensors in system shared memory whose key, without a leading slash, one of the patterns
         * matches as a whole. A client that shortens such memory while it is in use can end the process.
         */
        public Builder clientSharedMemory(List<Pattern> keys) {
            sharedMemoryKeys = List.copyOf(keys);
            return this;
        }

        /** Gives models the headers of HTTP requests in whose names the pattern is found, as parameters. */
        public Builder forwardHttpHeaders(Pattern pattern) {
            httpHeaders = pattern;
            return this;
        }

        /** Gives models the metadata of gRPC calls in whose names the pattern is found, as parameters. */
        public Builder forwardGrpcHeaders(Pattern pattern) {
            grpcHeaders = pattern;
            return this;
        }

        /** Lets the health service answer for the services of other protocols, too. */
        public Builder furtherServices(Set<String> names) {
            furtherServices = Set.copyOf(names);
            return this;
        }

        /**
         * Restricts REST calls.
         *
         * @param spec {@code <api>[,<api>]:<header>=<value>} with health, metadata, inference, shared-memory,
         *     model-config, model-repository, statistics, trace or logging
         * @throws io.nereid.base.ServingException INVALID_ARGUMENT when it is of another form or names a group again
         */
        public Builder restrictHttp(String spec) {
            Restriction.parse(spec, "", httpRestrictions);
            return this;
        }

        /** Restricts gRPC calls, as {@link #restrictHttp}; the header gets the prefix {@code triton-grpc-protocol-}. */
        public Builder restrictGrpc(String spec) {
            Restriction.parse(spec, "triton-grpc-protocol-", grpcRestrictions);
            return this;
        }

        /** The choices. */
        public V2Options build() {
            return new V2Options(this);
        }
    }
}
