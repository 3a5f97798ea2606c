// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import io.nereid.base.ServingException;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.Puppet;
import io.nereid.spi.InferenceJob;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A batch runner that doubles every element of an INT32 input and returns strings unchanged. Records its runs as
 * {@code job:rows}. Confined to one thread at a time.
 */
public final class DoublingRunner implements BatchRunner {
    public final List<String> ran = new ArrayList<>();
    public final List<BatchCloseReason> cuts = new ArrayList<>();
    public final List<AssertionError> trouble = new ArrayList<>();
    public Runnable during = () -> {};
    /** Makes the next run fail all of its jobs. */
    public @Nullable ServingException failure;
    /** Makes only the run with this position fail. */
    public int failAt = -1;

    @Override
    public void run(int instance, List<InferenceJob> jobs, BatchCloseReason cut) {
        StringBuilder text = new StringBuilder();
        for (InferenceJob job : jobs) {
            text.append(text.length() == 0 ? "" : " ")
                    .append(Puppet.number(job))
                    .append(':')
                    .append(job.batchSize());
        }
        boolean fails = failure != null && (failAt < 0 || failAt == ran.size());
        ran.add(text.toString());
        cuts.add(cut);
        Runnable now = during;
        during = () -> {};
        try {
            now.run();
        } catch (AssertionError e) {
            trouble.add(e);
        }
        for (InferenceJob job : jobs) {
            ServingException e = failure;
            if (fails && e != null) {
                job.fail(e);
            } else {
                job.ran(0, 0, job.batchSize());
                job.complete(answer(job.request().inputs()), Map.of("n", 1));
            }
        }
    }

    private static List<Tensor> answer(List<Tensor> inputs) {
        List<Tensor> outputs = new ArrayList<>();
        for (Tensor t : inputs) {
            if (t.dataType() == DataType.BYTES) {
                outputs.add(t.retainAs("of_" + t.name(), t.shape()));
                continue;
            }
            Tensor out = Tensor.allocate("of_" + t.name(), DataType.INT32, t.shape());
            ByteBuffer from = t.buffer();
            ByteBuffer to = out.buffer();
            while (from.hasRemaining()) {
                to.putInt(2 * from.getInt());
            }
            outputs.add(out);
        }
        return outputs;
    }

    @Override
    public boolean joinable(InferenceJob a, InferenceJob b) {
        List<Tensor> left = a.request().inputs();
        List<Tensor> right = b.request().inputs();
        boolean same = left.size() == right.size();
        for (int i = 0; same && i < left.size(); i++) {
            same = left.get(i).shape().sameBeyondFirst(right.get(i).shape());
        }
        return same;
    }
}
