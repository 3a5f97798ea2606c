// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.object;

import io.nereid.storage.http.HttpSession;

/** Writes objects to a store. Thread-safe; calls block. */
public interface UploadTarget {
    /**
     * Writes an object, or replaces the one with the same key atomically.
     *
     * @param key below the target's prefix, not encoded
     * @param type the content type
     */
    void put(String key, String type, byte[] bytes);

    /** A key below a prefix. */
    static String below(String prefix, String key) {
        return prefix.isEmpty() || prefix.endsWith("/") ? prefix + key : prefix + "/" + key;
    }

    /** The exception for an object that the store rejected. */
    static io.nereid.base.ServingException rejected(HttpSession session, String what, HttpSession.Answer answer) {
        int status = answer.status();
        String remedy = status == 401 || status == 403
                ? "check the credentials of the logger, and what they may write"
                : status == 404 ? "create the bucket or container" : null;
        return session.failed(what, status, HttpSession.reason(answer), remedy);
    }
}
