// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import ai.djl.pytorch.engine.PtSymbolBlock;
import ai.djl.pytorch.jni.JniUtils;
import java.io.ByteArrayOutputStream;
import java.nio.file.Path;
import java.util.Map;

/** Archives that libtorch has written itself. */
final class Rewritten {
    private Rewritten() {}

    static byte[] byTheEngine(Path file) throws Exception {
        PtRuntime runtime = PtRuntime.start(PtSettings.read(Map.of(), Map.of()), file.getParent());
        PtSymbolBlock block = runtime.load("rewritten", file);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        JniUtils.writeModule(block, out, false);
        block.close();
        return out.toByteArray();
    }
}
