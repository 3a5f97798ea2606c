// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A row of a batch without a request: the inputs and states of another row, with the READY control set to false. The
 * response is dropped. Confined to the thread of the run, except for its end.
 */
public final class PaddingJob implements InferenceJob {
    private final InferenceRequest request;
    private final AtomicBoolean ended = new AtomicBoolean();

    /**
     * @param example the prepared request of another row of the batch
     * @param given number of inputs in {@code example} that came from its client
     */
    PaddingJob(InferenceRequest example, int given, SequenceControls controls) {
        List<Tensor> theirs = example.inputs();
        List<Tensor> inputs = new ArrayList<>(theirs.size());
        for (int i = 0; i < given; i++) {
            inputs.add(theirs.get(i).retain());
        }
        controls.appendFiller(inputs);
        for (int i = given + controls.count(); i < theirs.size(); i++) {
            inputs.add(theirs.get(i).retain());
        }
        this.request = new InferenceRequest(
                example.model(), "", inputs, example.outputs(), Map.of(), Long.MAX_VALUE, example.arrivedNanos());
    }

    @Override
    public InferenceRequest request() {
        return request;
    }

    @Override
    public int batchSize() {
        return 1;
    }

    @Override
    public void respond(List<Tensor> outputs, Map<String, Object> parameters) {
        Tensor.closeAll(outputs);
    }

    @Override
    public void complete(List<Tensor> outputs, Map<String, Object> parameters) {
        Tensor.closeAll(outputs);
        end();
    }

    @Override
    public void fail(ServingException e) {
        end();
    }

    private void end() {
        if (ended.compareAndSet(false, true)) {
            request.release();
        }
    }
}
