// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.plane.reconcile;

import io.nereid.control.core.Revision;
import java.util.List;

/** Keeps the revisions of services beyond the end of this process. Implementations are thread-safe for different services. */
public interface RevisionArchive {
    /**
     * Returns the revisions of a service, oldest first.
     *
     * @param uid the service's uid; revisions of a deleted service of the same name are ignored
     */
    List<Revision> read(String namespace, String service, String uid);

    /** Replaces the revisions of a service. */
    void write(String namespace, String service, String uid, List<Revision> revisions);

    /** Deletes the revisions of a service, if there are any. */
    void delete(String namespace, String service);
}
