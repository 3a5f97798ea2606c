// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pmml;

import io.nereid.base.ServingException;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import javax.xml.stream.XMLInputFactory;
import javax.xml.stream.XMLStreamConstants;
import javax.xml.stream.XMLStreamException;
import javax.xml.stream.XMLStreamReader;
import org.jspecify.annotations.Nullable;
import org.pmml4s.FunctionNotFoundException;
import org.pmml4s.NotSupportedException;
import org.pmml4s.UnsupportedException;
import org.pmml4s.metadata.OutputField;
import org.pmml4s.model.Model;

/**
 * A document that has been read and understood. Immutable; the model may be asked by many threads.
 *
 * @param model what is asked
 * @param fields what it takes, in the order of its mining schema
 * @param outputs what it gives
 */
record PmmlDocument(Model model, List<InputField> fields, List<OutputField> outputs) {
    private static final String EXPORT = "export the model again as PMML 3 or 4, or as ONNX";
    /** Deeper documents are none that a tool has written. Newer JDKs, and the library with them, read 200 levels. */
    private static final int DEEPEST = 190;

    /** @throws ServingException INVALID_ARGUMENT for a file that is no PMML document, or one that cannot be served */
    static PmmlDocument read(Path file) {
        byte[] bytes;
        try {
            bytes = Files.readAllBytes(file);
        } catch (IOException e) {
            throw ServingException.invalidArgument(
                    "model file '" + file + "' cannot be read: " + e.getMessage(), "check that it can be read");
        }
        Charset charset = check(file, bytes);
        String text = new String(bytes, charset);
        try {
            Model model = Model.fromString(text.startsWith("\uFEFF") ? text.substring(1) : text);
            if (!model.isScorable()) {
                throw refused(file, "says of itself that it is not scorable");
            }
            List<InputField> fields = InputField.of(model);
            List<OutputField> outputs = List.of(model.outputFields());
            if (fields.isEmpty() || outputs.isEmpty()) {
                throw refused(
                        file,
                        fields.isEmpty()
                                ? "has a model without active fields, which cannot be asked about rows"
                                : "has a model without outputs");
            }
            rehearse(file, model, fields.size());
            return new PmmlDocument(model, fields, outputs);
        } catch (ServingException e) {
            throw e;
        } catch (Exception | StackOverflowError | OutOfMemoryError e) {
            // The library's exceptions are checked ones that Scala does not declare.
            throw refused(
                    file, (unsupported(e) ? "has what is not supported: " : "does not follow PMML: ") + reason(e));
        }
    }

    static String reason(Throwable e) {
        String message = e.getMessage();
        return message == null ? e.getClass().getSimpleName() : message;
    }

    /** Functions and elements that are looked up when they are needed: they are needed now. */
    private static void rehearse(Path file, Model model, int fields) {
        try {
            Object unused = model.predict((Object) new Object[fields]);
        } catch (Exception e) {
            // Else it does not take a row of nothing, as it may.
            if (unsupported(e)) {
                throw refused(file, "has what is not supported: " + reason(e));
            }
        }
    }

    private static boolean unsupported(Throwable e) {
        return e instanceof NotSupportedException
                || e instanceof UnsupportedException
                || e instanceof FunctionNotFoundException;
    }

    private static ServingException refused(Path file, String what) {
        return ServingException.invalidArgument("model file '" + file + "' " + what, EXPORT);
    }

    /** Reads the document through, so that what the library reads is well-formed and fetches nothing. */
    private static Charset check(Path file, byte[] bytes) {
        XMLInputFactory factory = XMLInputFactory.newDefaultFactory();
        factory.setProperty(XMLInputFactory.SUPPORT_DTD, false);
        factory.setProperty(XMLInputFactory.IS_SUPPORTING_EXTERNAL_ENTITIES, false);
        factory.setProperty("jdk.xml.maxElementDepth", "0");
        try {
            XMLStreamReader xml = factory.createXMLStreamReader(new ByteArrayInputStream(bytes));
            Charset charset = charset(xml.getCharacterEncodingScheme(), xml.getEncoding());
            int depth = 0;
            while (xml.hasNext()) {
                switch (xml.next()) {
                    case XMLStreamConstants.DTD ->
                        throw refused(file, "has a document type declaration (expected: none, for PMML has a schema)");
                    case XMLStreamConstants.START_ELEMENT -> {
                        if (depth++ == 0 && !xml.getLocalName().equals("PMML")) {
                            throw refused(
                                    file,
                                    "is no PMML document: its root element is '" + shown(xml.getLocalName())
                                            + "' (expected: PMML)");
                        }
                        if (depth > DEEPEST) {
                            throw refused(file, "has elements nested deeper than " + DEEPEST);
                        }
                    }
                    case XMLStreamConstants.END_ELEMENT -> depth--;
                    default -> {
                        // Read by the library.
                    }
                }
            }
            return charset;
        } catch (XMLStreamException e) {
            String where = e.getLocation() == null
                    ? ""
                    : " in line " + e.getLocation().getLineNumber() + ", column "
                            + e.getLocation().getColumnNumber();
            throw refused(file, "is not well-formed XML" + where);
        } catch (RuntimeException e) {
            if (e instanceof ServingException) {
                throw e;
            }
            throw refused(file, "is not well-formed XML: " + reason(e));
        }
    }

    private static Charset charset(@Nullable String declared, @Nullable String found) {
        String name = declared != null ? declared : found;
        return name == null || !Charset.isSupported(name) ? StandardCharsets.UTF_8 : Charset.forName(name);
    }

    private static String shown(String name) {
        return name.length() > 40 ? name.substring(0, 40) + "…" : name;
    }
}
