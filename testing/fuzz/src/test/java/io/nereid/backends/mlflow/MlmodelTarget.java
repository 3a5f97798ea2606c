// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.mlflow;

import io.nereid.base.ServingException;
import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.InputFile;
import io.nereid.fuzz.TargetRun;
import java.io.IOException;

/** An MLmodel file, and the flavor that is chosen from it. Confined to one thread. */
public final class MlmodelTarget implements FuzzTarget {
    private final InputFile file = new InputFile(MlModel.FILE);

    @Override
    public void read(byte[] input) throws IOException {
        file.with(input);
        MlModel model = MlModel.read(file.folder());
        try {
            Flavor.of(model, file.folder(), "m", "");
        } catch (ServingException e) {
            // The files that it names are not there.
            TargetRun.refused(e);
        }
    }

    /** A parser of YAML makes several objects for each character. */
    @Override
    public long allocationLimit(int length) {
        return (8L << 20) + 2_000L * length;
    }
}
