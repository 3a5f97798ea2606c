// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

/** A place in a store that objects are written to. Thread-safe; the calling thread waits. */
interface Target {
    /**
     * Writes an object in the place of what has its name; whoever reads sees the one or the other.
     *
     * @param key below the place's prefix, not encoded
     * @param type of the content
     */
    void put(String key, String type, byte[] bytes);

    /** A key below a prefix. */
    static String below(String prefix, String key) {
        return prefix.isEmpty() || prefix.endsWith("/") ? prefix + key : prefix + "/" + key;
    }

    /** The error of an object that the store did not take. */
    static io.nereid.base.ServingException refused(HttpSession session, String what, HttpSession.Answer answer) {
        int status = answer.status();
        String remedy = status == 401 || status == 403
                ? "check the credentials of the logger, and what they may write"
                : status == 404 ? "make the bucket or container" : null;
        return session.failed(what, status, HttpSession.reason(answer), remedy);
    }
}
