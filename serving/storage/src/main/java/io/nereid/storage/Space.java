// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

/** Bytes of the cache that a download may fill. Used by one download; closing gives back what was not kept. */
interface Space extends AutoCloseable {
    /** Space of which there is enough, for what is no cache. */
    Space ENDLESS = new Space() {
        @Override
        public void needs(long bytes, long present) {}

        @Override
        public void close() {}
    };

    /**
     * Makes sure that this much may be held in all; evicts what is not in use.
     *
     * @param bytes in all
     * @param present bytes of it that are on the disk already
     * @throws io.nereid.base.ServingException RESOURCE_EXHAUSTED with what is needed
     */
    void needs(long bytes, long present);

    @Override
    void close();
}
