// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Operation;
import io.nereid.base.access.Permission;
import io.nereid.transport.api.access.RequestHead;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * tritonserver's restricted APIs: groups of calls that need a header with a secret value. The groups cover every
 * protocol: {@code inference} restricts V1, MLflow and TensorFlow Serving's calls as well. Immutable.
 */
final class RestrictedApis {
    private static final String GRPC_PREFIX = "triton-grpc-protocol-";

    private final boolean grpc;
    private final Map<String, Restriction> byGroup = new HashMap<>();

    /** The header that a group needs, and the caller that sends it. */
    private static final class Restriction implements Caller {
        private final String header;
        private final byte[] value;
        private final Set<Permission> granted = EnumSet.noneOf(Permission.class);

        Restriction(String header, String value) {
            this.header = header;
            this.value = value.getBytes(StandardCharsets.UTF_8);
        }

        /** Compares in constant time, so that the value cannot be guessed by timing. */
        boolean allows(@Nullable String given) {
            return given != null && MessageDigest.isEqual(given.getBytes(StandardCharsets.UTF_8), value);
        }

        @Override
        public String name() {
            return "restricted-api";
        }

        @Override
        public boolean may(Permission permission, @Nullable String model) {
            return granted.contains(permission) || !permission.guarded();
        }
    }

    /**
     * Parses specifications.
     *
     * @param specs each {@code <api>[,<api>]:<header>=<value>}
     * @throws ServingException INVALID_ARGUMENT when one is malformed or a group is named for a second time
     */
    RestrictedApis(List<String> specs, boolean grpc) {
        this.grpc = grpc;
        for (String spec : specs) {
            parse(spec);
        }
    }

    private void parse(String spec) {
        int colon = spec.indexOf(':');
        int equals = spec.indexOf('=', colon + 1);
        if (colon <= 0 || equals <= colon + 1) {
            throw ServingException.invalidArgument(
                    "restriction '" + shown(spec) + "' is not of the form <api>[,<api>]:<header>=<value>");
        }
        String header = (grpc ? GRPC_PREFIX : "")
                + spec.substring(colon + 1, equals).strip().toLowerCase(Locale.ROOT);
        Restriction restriction = new Restriction(header, spec.substring(equals + 1));
        for (String name : spec.substring(0, colon).split(",", -1)) {
            String group = name.strip();
            Set<String> groups = new TreeSet<>();
            for (Operation operation : Operation.values()) {
                if (operation.group() != null) {
                    groups.add(operation.group());
                    if (operation.group().equals(group)) {
                        restriction.granted.add(operation.permission());
                    }
                }
            }
            if (!groups.contains(group)) {
                throw ServingException.invalidArgument(
                        "unknown restricted api '" + group + "' (expected one of " + String.join(", ", groups) + ")");
            }
            if (byGroup.put(group, restriction) != null) {
                throw ServingException.invalidArgument(
                        "restricted api '" + group + "' can not be specified in multiple config groups");
            }
        }
    }

    /** A specification without its secret value. */
    private static String shown(String spec) {
        int equals = spec.indexOf('=');
        return equals < 0 ? spec : spec.substring(0, equals) + "=…";
    }

    boolean isEmpty() {
        return byGroup.isEmpty();
    }

    /** Whether an operation needs a header. */
    boolean restricts(Operation operation) {
        return operation.group() != null && byGroup.containsKey(operation.group());
    }

    /** The name of the header that an operation needs; null for none. */
    @Nullable String header(Operation operation) {
        Restriction restriction = byGroup.get(String.valueOf(operation.group()));
        return restriction == null ? null : restriction.header;
    }

    /** The caller of a restricted operation that sends the right header; null when it does not. */
    @Nullable Caller caller(Operation operation, RequestHead head) {
        Restriction restriction = byGroup.get(operation.group());
        return restriction != null && restriction.allows(head.header(restriction.header)) ? restriction : null;
    }

    /** The error of a caller without the header. */
    ServingException denied(Operation operation) {
        Restriction restriction = byGroup.get(operation.group());
        return ServingException.of(
                ErrorCode.PERMISSION_DENIED,
                "This " + (grpc ? "protocol" : "API") + " is restricted, expecting header '"
                        + (restriction == null ? "" : restriction.header) + "'");
    }
}
