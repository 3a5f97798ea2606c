// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.Map;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipException;
import java.util.zip.ZipFile;
import org.jspecify.annotations.Nullable;

/**
 * Reads a TorchScript archive (a zip file) without libtorch, and identifies other files of PyTorch, so that the error
 * names what the file is and how to convert it. Checksums are verified here, because libtorch does not. Immutable.
 */
final class TorchArchive {
    /** The limit on source code; that of the largest models is a few megabytes. */
    private static final int MOST_CODE = 64 << 20;

    private static final int MOST_PICKLE = 4096;
    private static final String SCRIPT_ADVICE =
            "save it as TorchScript: torch.jit.script(model).save('model.pt'), or torch.jit.trace(model, example)"
                    + ".save('model.pt'); or export it to ONNX with torch.onnx.export";

    private TorchArchive() {}

    /** Whether a file begins like a zip archive or a pickle, which PyTorch's files are. */
    static boolean recognises(Path file) {
        byte[] head = new byte[4];
        try (InputStream in = Files.newInputStream(file)) {
            return in.readNBytes(head, 0, 4) == 4 && (isZip(head) || isPickle(head));
        } catch (IOException e) {
            return false;
        }
    }

    private static boolean isZip(byte[] head) {
        return head[0] == 'P' && head[1] == 'K' && head[2] == 3 && head[3] == 4;
    }

    private static boolean isPickle(byte[] head) {
        return head[0] == (byte) 0x80 && head[1] >= 2 && head[1] <= 5;
    }

    /**
     * Validates the archive and reads the signature of its model.
     *
     * @throws ServingException INVALID_ARGUMENT when it is not a complete TorchScript archive
     */
    static TorchScriptSignature read(String model, Path file) throws IOException {
        byte[] head = new byte[4];
        try (InputStream in = Files.newInputStream(file)) {
            if (in.readNBytes(head, 0, 4) < 4 || !isZip(head)) {
                throw isPickle(head)
                        ? rejected(model, file, "it was made with torch.save, not as TorchScript", SCRIPT_ADVICE)
                        : rejected(model, file, "it is not a TorchScript archive", SCRIPT_ADVICE);
            }
        }
        try (ZipFile zip = new ZipFile(file.toFile())) {
            String prefix = prefix(zip);
            if (prefix == null) {
                throw foreign(model, file, zip);
            }
            Map<String, String> sources = new HashMap<>();
            long code = 0;
            for (Enumeration<? extends ZipEntry> all = zip.entries(); all.hasMoreElements(); ) {
                ZipEntry entry = all.nextElement();
                String name = entry.getName();
                check(model, file, zip, entry);
                if (name.startsWith(prefix + "code/") && name.endsWith(".py")) {
                    code += entry.getSize();
                    if (entry.getSize() < 0 || code > MOST_CODE) {
                        throw rejected(model, file, "it has more than 64 MiB of code", SCRIPT_ADVICE);
                    }
                    try (InputStream in = zip.getInputStream(entry)) {
                        sources.put(
                                name.substring(prefix.length() + "code/".length()),
                                new String(in.readNBytes((int) entry.getSize()), StandardCharsets.UTF_8));
                    }
                }
            }
            String root = root(zip, prefix);
            TorchScriptSignature script = root.isEmpty() ? null : TorchScriptSignature.read(root, sources);
            if (script == null) {
                throw rejected(
                        model,
                        file,
                        "its " + (root.isEmpty() ? "model" : root) + " has no method 'forward'",
                        "give the module a forward method and save it again");
            }
            return script;
        } catch (ZipException | EOFException e) {
            throw damaged(model, file, "it is damaged or truncated (" + e.getMessage() + ")", e);
        }
    }

    /** The top folder of a TorchScript archive, with a trailing slash; null when this is not a TorchScript archive. */
    private static @Nullable String prefix(ZipFile zip) {
        for (Enumeration<? extends ZipEntry> all = zip.entries(); all.hasMoreElements(); ) {
            String name = all.nextElement().getName();
            if (name.endsWith("/constants.pkl") && name.indexOf('/') == name.length() - "/constants.pkl".length()) {
                String prefix = name.substring(0, name.indexOf('/') + 1);
                return zip.getEntry(prefix + "data.pkl") == null ? null : prefix;
            }
        }
        return null;
    }

    /** Verifies the checksum of an entry, which libtorch does not. */
    private static void check(String model, Path file, ZipFile zip, ZipEntry entry) throws IOException {
        CRC32 crc = new CRC32();
        byte[] buffer = new byte[1 << 16];
        try (InputStream in = zip.getInputStream(entry)) {
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                crc.update(buffer, 0, n);
            }
        }
        if (entry.getCrc() >= 0 && crc.getValue() != entry.getCrc()) {
            throw damaged(model, file, "it is damaged: the checksum of '" + entry.getName() + "' is wrong", null);
        }
    }

    /** The qualified name of the model's class, which is the first global in its pickle; empty when it is not found. */
    private static String root(ZipFile zip, String prefix) throws IOException {
        byte[] pickle;
        try (InputStream in = zip.getInputStream(zip.getEntry(prefix + "data.pkl"))) {
            pickle = in.readNBytes(MOST_PICKLE);
        }
        // PROTO 2, then GLOBAL: module and class, each to the end of its line.
        if (pickle.length < 3 || pickle[0] != (byte) 0x80 || pickle[2] != 'c') {
            return "";
        }
        String text = new String(pickle, 3, pickle.length - 3, StandardCharsets.UTF_8);
        int first = text.indexOf('\n');
        int second = first < 0 ? -1 : text.indexOf('\n', first + 1);
        return second < 0 ? "" : text.substring(0, first) + "." + text.substring(first + 1, second);
    }

    /** Identifies an archive that is not TorchScript. */
    private static ServingException foreign(String model, Path file, ZipFile zip) {
        boolean eager = false;
        boolean compiled = false;
        boolean exported = false;
        for (Enumeration<? extends ZipEntry> all = zip.entries(); all.hasMoreElements(); ) {
            String name = all.nextElement().getName();
            if (name.startsWith("MAR-INF/")) {
                return rejected(
                        model,
                        file,
                        "it is a TorchServe archive (.mar), whose handler is Python code",
                        "take the TorchScript file (its serialized file) out of the archive and name it model.pt; a"
                                + " handler's code belongs in a Python model");
            }
            compiled |= name.contains("data/aotinductor/");
            exported |= name.endsWith("archive_format")
                    || name.endsWith("serialized_exported_program.json")
                    || name.matches("(.*/)?models/[^/]+\\.json");
            if (name.equals("model.json") || (name.endsWith("/model.json") && !name.endsWith("/models/model.json"))) {
                return rejected(
                        model, file, "it was saved by PyTorch before 1.4", "load it and save it with a newer PyTorch");
            }
            eager |= name.endsWith("/data.pkl");
        }
        if (compiled || exported) {
            return rejected(
                    model,
                    file,
                    compiled
                            ? "it is a package of AOTInductor (.pt2): native code, which this server does not run"
                            : "it was made with torch.export (.pt2), which needs Python or a newer libtorch",
                    "'nereid convert " + file + "' names the command that converts it; or " + SCRIPT_ADVICE);
        }
        return eager
                ? rejected(
                        model,
                        file,
                        "it was made with torch.save of a module or of its weights, not as TorchScript",
                        SCRIPT_ADVICE)
                : rejected(model, file, "it is a zip archive, but not of TorchScript", SCRIPT_ADVICE);
    }

    private static ServingException rejected(String model, Path file, String what, String remedy) {
        return ServingException.invalidArgument(
                "unable to load model '" + model + "' from '" + file + "': " + what, remedy);
    }

    private static ServingException damaged(String model, Path file, String what, @Nullable Throwable cause) {
        String message = "unable to load model '" + model + "' from '" + file + "': " + what;
        String remedy = "copy the file again, and compare its length and checksum with the original's";
        return cause == null
                ? ServingException.invalidArgument(message, remedy)
                : ServingException.wrap(ErrorCode.INVALID_ARGUMENT, message, remedy, cause);
    }
}
