// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.access;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What the API server says of callers. Calls block for a request. Thread-safe. */
interface AccessApi {
    /**
     * Whose token it is.
     *
     * @param audiences empty for the API server's own
     * @return null when the token is not valid
     * @throws io.nereid.base.ServingException when the API server does not say
     */
    @Nullable Identity identify(String token, List<String> audiences);

    /**
     * Whether a user holds a right.
     *
     * @throws io.nereid.base.ServingException when the API server does not say
     */
    boolean allows(Identity identity, Right right);

    /**
     * A user of the cluster. Immutable.
     *
     * @param name such as {@code system:serviceaccount:default:client}
     * @param uid empty for none
     * @param groups its groups
     * @param extra more about it, for the API server's own use
     */
    record Identity(String name, String uid, List<String> groups, Map<String, List<String>> extra) {
        public Identity {
            groups = List.copyOf(groups);
            extra = Map.copyOf(extra);
        }
    }

    /**
     * A verb on one resource. Immutable.
     *
     * @param resource {@code inferenceservices} or {@code inferencegraphs}
     */
    record Right(String verb, String resource, String namespace, String name) {
        /** As messages say it. */
        String text() {
            return verb + " " + resource + ".serving.kserve.io \"" + name + "\" in namespace \"" + namespace + "\"";
        }
    }
}
