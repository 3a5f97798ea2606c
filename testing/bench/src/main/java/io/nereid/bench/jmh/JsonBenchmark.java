// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.jmh;

import io.nereid.json.FloatStyle;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonWriter;
import io.nereid.json.TensorReader;
import io.nereid.tensor.DataType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Reading and writing JSON arrays of floats from and to direct memory. A score divided by {@link #floats} is the cost
 * of one.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class JsonBenchmark {
    /** Elements of the array: a small request, and an image batch of 4.8 MB. */
    @Param({"16", "1200000"})
    public int floats;

    /** 6 decimals as in handwritten requests, or 17 digits as Python prints a float32 that was widened to a double. */
    @Param({"6", "17"})
    public int digits;

    private final JsonReader reader = new JsonReader();
    private final TensorReader tensors = new TensorReader(reader);
    private final JsonWriter writer = new JsonWriter(1 << 16);
    private byte[] body = {};
    private ByteBuffer memory = ByteBuffer.allocate(0);

    /** Creates the body and the memory that it is read into. */
    @Setup
    public void prepare() {
        Random random = new Random(1);
        StringBuilder json = new StringBuilder("[");
        for (int i = 0; i < floats; i++) {
            json.append(i == 0 ? "" : ",");
            if (digits == 6) {
                json.append(random.nextInt(1_000_000) / 1e6f);
            } else {
                json.append((double) random.nextFloat());
            }
        }
        byte[] text = json.append(']').toString().getBytes(StandardCharsets.US_ASCII);
        body = Arrays.copyOf(text, text.length + JsonReader.SLACK);
        memory = ByteBuffer.allocateDirect(4 * floats).order(ByteOrder.LITTLE_ENDIAN);
        read();
    }

    /** Reads the array into direct memory. */
    @Benchmark
    public ByteBuffer read() {
        reader.reset(body, 0, body.length - JsonReader.SLACK);
        tensors.read(DataType.FP32, memory, 0, floats);
        return memory;
    }

    /** Skips the array, as when its shape follows the data. */
    @Benchmark
    public int skip() {
        reader.reset(body, 0, body.length - JsonReader.SLACK);
        reader.skipValue();
        return reader.position();
    }

    /** Prints the array with the fewest digits of a float. */
    @Benchmark
    public int writeShortest() {
        writer.reset();
        writer.floatStyle(FloatStyle.SHORTEST).flatArray(DataType.FP32, memory, 0, floats);
        return writer.length();
    }

    /** Prints the array as the doubles that the floats widen to. */
    @Benchmark
    public int writeWidened() {
        writer.reset();
        writer.floatStyle(FloatStyle.WIDENED).flatArray(DataType.FP32, memory, 0, floats);
        return writer.length();
    }
}
