// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples.model;

import io.nereid.backend.ModelRequest;
import io.nereid.backends.java.BuiltInModel;
import io.nereid.backends.java.JavaRequestModel;
import io.nereid.base.ServingException;
import io.nereid.tensor.Tensor;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Triton's identity model: every response has the same four parameters. Thread-safe: has no state. */
public final class TritonIdentityModel extends BuiltInModel implements JavaRequestModel {
    private static final Map<String, Object> PARAMETERS = parameters();

    private final IdentityModel identity;
    private final boolean omits;

    /** @param omits whether a response has no output whose input is absent; otherwise it is zeros */
    public TritonIdentityModel(IdentityModel identity, boolean omits) {
        super(identity.config());
        this.identity = identity;
        this.omits = omits;
    }

    /** Creates the parameters in Triton's order. */
    private static Map<String, Object> parameters() {
        Map<String, Object> parameters = new LinkedHashMap<>();
        parameters.put("param0", "an example string parameter");
        parameters.put("param1", 42L);
        parameters.put("param2", false);
        parameters.put("param3", 123.123);
        return Collections.unmodifiableMap(parameters);
    }

    @Override
    public boolean inline() {
        return true;
    }

    @Override
    public void execute(List<ModelRequest> requests) {
        for (ModelRequest request : requests) {
            List<Tensor> outputs;
            try {
                List<Tensor> inputs = request.request().inputs();
                List<String> wanted = request.outputs();
                outputs = identity.run(inputs, omits ? identity.present(inputs, wanted) : wanted);
            } catch (ServingException e) {
                request.fail(e);
                continue;
            }
            request.complete(outputs, PARAMETERS);
        }
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        return identity.run(inputs, outputs);
    }
}
