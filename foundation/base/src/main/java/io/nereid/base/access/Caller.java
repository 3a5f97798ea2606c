// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base.access;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import org.jspecify.annotations.Nullable;

/**
 * Who makes a request, and what the caller may do. Implementations are thread-safe.
 *
 * <pre>{@code
 * exchange.caller().require(Permission.MANAGE, "iris");     // throws PERMISSION_DENIED
 * }</pre>
 */
public interface Caller {
    /** Stands for all models, or all namespaces: only a role that is not limited to some of them matches it. */
    String ALL = "*";

    /** The server itself: steps of ensembles and graphs, warm-up. May do everything. */
    Caller INTERNAL = new Caller() {
        @Override
        public String name() {
            return "internal";
        }

        @Override
        public boolean may(Permission permission, @Nullable String model) {
            return true;
        }
    };

    /** A caller without credentials, where nothing else is configured: may do what changes nothing. */
    Caller ANONYMOUS = new Caller() {
        @Override
        public String name() {
            return "anonymous";
        }

        @Override
        public boolean may(Permission permission, @Nullable String model) {
            return !permission.guarded();
        }
    };

    /** A caller on this machine, where the server trusts them: may do everything. */
    Caller LOCAL = new Caller() {
        @Override
        public String name() {
            return "local";
        }

        @Override
        public boolean may(Permission permission, @Nullable String model) {
            return true;
        }
    };

    /**
     * The name in audit logs and metrics: of an API key, the subject of a token or a certificate, {@code local} or
     * {@code anonymous}. Never a secret.
     */
    String name();

    /**
     * Whether the caller holds a permission.
     *
     * @param model the model that the request is about; null when it is about none or not known yet: then the answer is
     *     whether the caller holds the permission for any model
     */
    boolean may(Permission permission, @Nullable String model);

    /**
     * Checks that the caller holds a permission.
     *
     * @throws ServingException PERMISSION_DENIED when not
     */
    default void require(Permission permission, @Nullable String model) {
        if (!may(permission, model)) {
            throw denied(permission, model);
        }
    }

    /** The error of a caller without a permission. */
    default ServingException denied(Permission permission, @Nullable String model) {
        boolean resources = permission == Permission.CONTROL || permission == Permission.CONTROL_READ;
        String about;
        if (model == null) {
            about = "";
        } else if (resources && model.equals("*")) {
            about = " in all namespaces";
        } else {
            about = (resources ? " in namespace '" : " model '")
                    + (model.length() > 100 ? model.substring(0, 100) + "…" : model) + "'";
        }
        return ServingException.of(
                ErrorCode.PERMISSION_DENIED,
                "'" + name() + "' may not " + permission.configName() + about,
                "use credentials with the permission '" + permission.configName() + "'");
    }
}
