// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.cache;

/** A reservation of cache space for one download. Confined to one download; closing releases it. */
public interface CacheReservation extends AutoCloseable {
    /** An unlimited reservation, for directories outside of the cache. */
    CacheReservation ENDLESS = new CacheReservation() {
        @Override
        public void needs(long bytes, long present) {}

        @Override
        public void close() {}
    };

    /**
     * Grows the reservation to at least this size; evicts unused content where needed.
     *
     * @param bytes total size of the reservation
     * @param present bytes of it that are on the disk already
     * @throws io.nereid.base.ServingException RESOURCE_EXHAUSTED if the quota or the disk does not suffice
     */
    void needs(long bytes, long present);

    @Override
    void close();
}
