// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.recording;

import java.time.Duration;

/**
 * Limits of a {@link RequestLogger}. Immutable.
 *
 * @param maxQueued maximum number of logged requests that wait for the disk
 * @param maxQueuedBytes maximum size of the tensors that wait for the disk
 * @param maxFileRecords number of records after which a file is completed; TensorFlow Serving accepts at most 1000 for
 *     warm-up
 * @param maxFileBytes size after which a file is completed
 * @param maxFileAge age after which a file is completed
 * @param retryAfter pause after a disk error
 */
public record RequestLoggerOptions(
        int maxQueued,
        long maxQueuedBytes,
        int maxFileRecords,
        long maxFileBytes,
        Duration maxFileAge,
        Duration retryAfter) {
    /**
     * At most 1024 requests or 64 MiB in the queue; files of 1000 records, 256 MiB or one minute; a pause of 5 seconds.
     */
    public static final RequestLoggerOptions DEFAULT =
            new RequestLoggerOptions(1024, 64 << 20, 1000, 256 << 20, Duration.ofMinutes(1), Duration.ofSeconds(5));

    /** Returns these limits with other limits for files. */
    public RequestLoggerOptions withFiles(int records, long bytes, Duration age) {
        return new RequestLoggerOptions(maxQueued, maxQueuedBytes, records, bytes, age, retryAfter);
    }

    /** Returns these limits with other limits for the queue. */
    public RequestLoggerOptions withQueue(int requests, long bytes) {
        return new RequestLoggerOptions(requests, bytes, maxFileRecords, maxFileBytes, maxFileAge, retryAfter);
    }

    /** Returns these limits with another pause after a disk error. */
    public RequestLoggerOptions withRetryAfter(Duration pause) {
        return new RequestLoggerOptions(maxQueued, maxQueuedBytes, maxFileRecords, maxFileBytes, maxFileAge, pause);
    }
}
