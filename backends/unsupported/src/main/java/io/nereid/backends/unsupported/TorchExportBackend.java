// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.unsupported;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Enumeration;
import java.util.List;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.jspecify.annotations.Nullable;

/**
 * PyTorch's {@code .pt2} archives: exported programs, which only Python and libtorch of the same version read, and
 * packages of AOTInductor, whose native code would run with the server's rights. The error names what the archive holds,
 * and the command that converts it. Format: "PT2 Archive Spec" in PyTorch's documentation of {@code torch.export}, and
 * before version 2.8 a file {@code serialized_exported_program.json}. Stateless.
 */
public final class TorchExportBackend extends UnsupportedBackend {
    private static final String EXPORT_AGAIN = "where the model's Python code is, save it in another way:"
            + " torch.onnx.export(model, example_inputs, 'model.onnx', dynamo=True), or"
            + " torch.jit.trace(model, example_inputs).save('model.pt')";

    /** For {@link java.util.ServiceLoader}. */
    public TorchExportBackend() {
        super("torch_aoti", List.of("torch_aoti"), List.of("model.pt2"));
    }

    /** What an archive holds. */
    private enum Content {
        PROGRAM,
        PACKAGE,
        BOTH,
        SCRIPT,
        OTHER
    }

    @Override
    String reason(Path file, FileHeader head) {
        String library = library(file);
        String code = "native code" + (library == null ? "" : " ('" + library + "')")
                + " that was compiled for one kind of machine, which this server does not run";
        return switch (content(file)) {
            case PROGRAM ->
                "is a program of torch.export (ExportedProgram), which only PyTorch itself reads; this server serves the"
                        + " ONNX model that PyTorch makes of it";
            case PACKAGE -> "is a package of AOTInductor: " + code;
            case BOTH ->
                "is a package of AOTInductor, " + code + ", beside a program of torch.export (ExportedProgram)";
            case SCRIPT -> "is a TorchScript archive under the name of another format";
            case OTHER -> "has the name of an archive of torch.export, but does not hold a program or a package";
        };
    }

    @Override
    String remedy(Path file) {
        Path path = file.toAbsolutePath().normalize();
        return switch (content(file)) {
            case PROGRAM, BOTH ->
                "python3 -c \"import torch; torch.onnx.export(torch.export.load('" + path + "'), f='"
                        + path.resolveSibling("model.onnx")
                        + "', dynamo=True)\" (PyTorch 2.6 or newer, with the package"
                        + " onnxscript), then remove '" + file.getFileName()
                        + "', and the platform and backend of a config.pbtxt";
            case PACKAGE -> EXPORT_AGAIN;
            case SCRIPT -> "mv '" + path + "' '" + path.resolveSibling("model.pt") + "'";
            case OTHER -> "copy the file again; or, " + EXPORT_AGAIN;
        };
    }

    private static Content content(Path file) {
        boolean program = false;
        boolean compiled = false;
        boolean script = false;
        try (ZipFile zip = new ZipFile(file.toFile())) {
            for (Enumeration<? extends ZipEntry> all = zip.entries(); all.hasMoreElements(); ) {
                String name = all.nextElement().getName();
                program |= name.endsWith("serialized_exported_program.json") || isModel(name);
                compiled |= isCompiled(name);
                script |= name.endsWith("/constants.pkl");
            }
        } catch (IOException e) {
            return Content.OTHER;
        }
        if (program) {
            return compiled ? Content.BOTH : Content.PROGRAM;
        }
        return compiled ? Content.PACKAGE : script ? Content.SCRIPT : Content.OTHER;
    }

    /** {@code models/NAME.json}, with or without a folder around it. */
    private static boolean isModel(String name) {
        int at = name.indexOf("models/");
        return name.endsWith(".json")
                && (at == 0 || (at > 0 && name.charAt(at - 1) == '/' && name.indexOf('/') == at - 1))
                && name.indexOf('/', at + "models/".length()) < 0;
    }

    private static boolean isCompiled(String name) {
        return name.contains("data/aotinductor/");
    }

    /** The name of the shared library in a package; null if there is none. */
    private static @Nullable String library(Path file) {
        try (ZipFile zip = new ZipFile(file.toFile())) {
            for (Enumeration<? extends ZipEntry> all = zip.entries(); all.hasMoreElements(); ) {
                String name = all.nextElement().getName();
                if (isCompiled(name) && name.endsWith(".so")) {
                    return name.substring(name.lastIndexOf('/') + 1);
                }
            }
        } catch (IOException e) {
            return null;
        }
        return null;
    }
}
