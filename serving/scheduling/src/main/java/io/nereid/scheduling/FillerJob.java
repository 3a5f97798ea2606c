// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A row without a request: the inputs and states of another row of the batch, under controls that say "not ready". What
 * the model answers is dropped. Confined to the run, but for its end.
 */
final class FillerJob implements InferenceJob {
    private final InferenceRequest request;
    private final AtomicBoolean ended = new AtomicBoolean();

    /**
     * @param example a row of the same batch, already prepared
     * @param given how many inputs of it came from its client
     */
    FillerJob(InferenceRequest example, int given, ControlTensors controls) {
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
