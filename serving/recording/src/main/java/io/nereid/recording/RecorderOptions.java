// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.recording;

import java.time.Duration;

/**
 * Limits of a {@link Recorder}. Immutable.
 *
 * @param maxQueued recorded requests that may wait for the disk
 * @param maxQueuedBytes bytes of tensors that may wait for the disk
 * @param maxFileRecords records in a file; TensorFlow Serving takes no more than 1000 for warm-up
 * @param maxFileBytes a file that has reached this is complete
 * @param maxFileAge a file that was begun so long ago is complete
 * @param retryAfter how long nothing is written after the disk has failed
 */
public record RecorderOptions(
        int maxQueued,
        long maxQueuedBytes,
        int maxFileRecords,
        long maxFileBytes,
        Duration maxFileAge,
        Duration retryAfter) {
    /** 1024 requests of together 64 MiB; files of 1000 records, 256 MiB or a minute; 5 seconds after a failure. */
    public static final RecorderOptions DEFAULT =
            new RecorderOptions(1024, 64 << 20, 1000, 256 << 20, Duration.ofMinutes(1), Duration.ofSeconds(5));

    /** These limits with other ones for files. */
    public RecorderOptions withFiles(int records, long bytes, Duration age) {
        return new RecorderOptions(maxQueued, maxQueuedBytes, records, bytes, age, retryAfter);
    }

    /** These limits with other ones for what waits. */
    public RecorderOptions withQueue(int requests, long bytes) {
        return new RecorderOptions(requests, bytes, maxFileRecords, maxFileBytes, maxFileAge, retryAfter);
    }

    /** These limits with another pause after a failure of the disk. */
    public RecorderOptions withRetryAfter(Duration pause) {
        return new RecorderOptions(maxQueued, maxQueuedBytes, maxFileRecords, maxFileBytes, maxFileAge, pause);
    }
}
