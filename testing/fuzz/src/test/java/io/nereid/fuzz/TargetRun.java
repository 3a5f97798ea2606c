// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz;

import com.sun.management.ThreadMXBean;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.lang.management.ManagementFactory;
import java.nio.BufferOverflowException;
import java.nio.BufferUnderflowException;
import java.nio.ReadOnlyBufferException;
import java.util.EnumSet;
import java.util.NoSuchElementException;
import java.util.Set;

/**
 * Runs a target with the invariants that hold for all of them: an input is read, or refused with an error of the input; heap memory
 * and processor time are bounded. An input that exceeds a bound is run some times more, so that the loading of classes and a pause
 * of the machine are not findings. Confined to one thread.
 */
public final class TargetRun {
    /** Codes that say that the input is wrong, too large or of an unsupported kind. */
    private static final Set<ErrorCode> REFUSALS = EnumSet.of(
            ErrorCode.INVALID_ARGUMENT,
            ErrorCode.UNIMPLEMENTED,
            ErrorCode.OUT_OF_RANGE,
            ErrorCode.FAILED_PRECONDITION,
            ErrorCode.NOT_FOUND,
            ErrorCode.RESOURCE_EXHAUSTED,
            ErrorCode.DATA_LOSS);

    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    /** How often an input is measured that exceeds a bound; the least counts. */
    private static final int REPEATED = 3;

    private final String name;
    private final FuzzTarget target;
    private long accepted;

    public TargetRun(String name, FuzzTarget target) {
        this.name = name;
        this.target = target;
    }

    /** How many inputs were read without a refusal. */
    public long accepted() {
        return accepted;
    }

    /** Reads an input; throws when an invariant does not hold. */
    public void run(byte[] input) {
        long bytes = THREADS.getCurrentThreadAllocatedBytes();
        long nanos = System.nanoTime();
        read(input);
        nanos = System.nanoTime() - nanos;
        bytes = THREADS.getCurrentThreadAllocatedBytes() - bytes;
        if (bytes > target.allocationLimit(input.length) || nanos > target.nanosLimit()) {
            measure(input);
        }
    }

    private void measure(byte[] input) {
        long bytes = Long.MAX_VALUE;
        long nanos = Long.MAX_VALUE;
        for (int i = 0; i < REPEATED; i++) {
            long bytesBefore = THREADS.getCurrentThreadAllocatedBytes();
            long nanosBefore = THREADS.getCurrentThreadCpuTime();
            read(input);
            nanos = Math.min(nanos, THREADS.getCurrentThreadCpuTime() - nanosBefore);
            bytes = Math.min(bytes, THREADS.getCurrentThreadAllocatedBytes() - bytesBefore);
        }
        if (bytes > target.allocationLimit(input.length)) {
            throw new AssertionError(name + ": an input of " + input.length + " bytes allocates " + bytes
                    + " bytes, more than " + target.allocationLimit(input.length));
        }
        if (nanos > target.nanosLimit()) {
            throw new AssertionError(name + ": an input of " + input.length + " bytes takes " + nanos / 1_000_000
                    + " ms of processor time, more than " + target.nanosLimit() / 1_000_000);
        }
    }

    private void read(byte[] input) {
        try {
            target.read(input);
            accepted++;
        } catch (ServingException e) {
            refused(e);
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Exception e) {
            throw new AssertionError(name + ": a checked exception leaves the reader", e);
        }
    }

    /** Checks the error by which an input is refused. */
    public static void refused(ServingException e) {
        if (!REFUSALS.contains(e.code())) {
            throw new AssertionError("refused with " + e.code() + ", which does not say that the input is wrong", e);
        }
        for (Throwable cause = e.getCause(); cause != null; cause = cause.getCause()) {
            if (cause instanceof NullPointerException
                    || cause instanceof IndexOutOfBoundsException
                    || cause instanceof ClassCastException
                    || cause instanceof NegativeArraySizeException
                    || cause instanceof BufferUnderflowException
                    || cause instanceof BufferOverflowException
                    || cause instanceof ReadOnlyBufferException
                    || cause instanceof NoSuchElementException
                    || cause instanceof ArithmeticException
                    || cause instanceof Error) {
                throw new AssertionError("refused because of an error that the reader did not expect", e);
            }
        }
        if (e.getMessage() == null || e.getMessage().length() > 20_000) {
            throw new AssertionError("refused without a message, or with one of more than 20,000 characters", e);
        }
    }
}
