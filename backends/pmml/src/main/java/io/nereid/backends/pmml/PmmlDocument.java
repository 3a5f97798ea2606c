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
 * A parsed and validated document. Immutable; many threads can evaluate the model.
 *
 * @param model the model
 * @param fields its input fields, in the order of the mining schema
 * @param outputs its output fields
 */
record PmmlDocument(Model model, List<InputField> fields, List<OutputField> outputs) {
    private static final String EXPORT = "export the model again as PMML 3 or 4, or as ONNX";
    /** The maximum depth of elements, beyond that of real documents. Newer JDKs limit the library to 200 levels. */
    private static final int DEEPEST = 190;

    /**
     * Reads a document.
     *
     * @throws ServingException INVALID_ARGUMENT for a file that is not a PMML document, or not a supported one
     */
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
            Model model = Model.fromString(TargetOutput.of(text.startsWith("\uFEFF") ? text.substring(1) : text));
            if (!model.isScorable()) {
                throw invalid(file, "has isScorable=false");
            }
            List<InputField> fields = InputField.of(model);
            List<OutputField> outputs = List.of(model.outputFields());
            if (fields.isEmpty() || outputs.isEmpty()) {
                throw invalid(
                        file, fields.isEmpty() ? "has a model without active fields" : "has a model without outputs");
            }
            validate(file, model, fields.size());
            return new PmmlDocument(model, fields, outputs);
        } catch (ServingException e) {
            throw e;
        } catch (Exception | StackOverflowError | OutOfMemoryError e) {
            // The library throws checked exceptions that it does not declare, as it is written in Scala.
            throw invalid(
                    file,
                    (unsupported(e) ? "uses a feature that is not supported: " : "is not valid PMML: ") + reason(e));
        }
    }

    static String reason(Throwable e) {
        String message = e.getMessage();
        return message == null ? e.getClass().getSimpleName() : message;
    }

    /**
     * Evaluates a row of missing values, so that unknown functions and elements fail at load time, not in a request.
     */
    private static void validate(Path file, Model model, int fields) {
        try {
            Object unused = model.predict((Object) new Object[fields]);
        } catch (Exception e) {
            // Other errors are ignored: a model may reject a row of missing values.
            if (unsupported(e)) {
                throw invalid(file, "uses a feature that is not supported: " + reason(e));
            }
        }
    }

    private static boolean unsupported(Throwable e) {
        return e instanceof NotSupportedException
                || e instanceof UnsupportedException
                || e instanceof FunctionNotFoundException;
    }

    private static ServingException invalid(Path file, String what) {
        return ServingException.invalidArgument("model file '" + file + "' " + what, EXPORT);
    }

    /** Checks that the document is well-formed and has no DTD, so that the library cannot fetch external entities. */
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
                        throw invalid(file, "has a document type declaration (expected: none, for PMML has a schema)");
                    case XMLStreamConstants.START_ELEMENT -> {
                        if (depth++ == 0 && !xml.getLocalName().equals("PMML")) {
                            throw invalid(
                                    file,
                                    "is not a PMML document: its root element is '" + shown(xml.getLocalName())
                                            + "' (expected: PMML)");
                        }
                        if (depth > DEEPEST) {
                            throw invalid(file, "has elements nested deeper than " + DEEPEST);
                        }
                    }
                    case XMLStreamConstants.END_ELEMENT -> depth--;
                    default -> {
                        // Text and processing instructions cannot do harm; the library parses them.
                    }
                }
            }
            return charset;
        } catch (XMLStreamException e) {
            String where = e.getLocation() == null
                    ? ""
                    : " in line " + e.getLocation().getLineNumber() + ", column "
                            + e.getLocation().getColumnNumber();
            throw invalid(file, "is not well-formed XML" + where);
        } catch (RuntimeException e) {
            if (e instanceof ServingException) {
                throw e;
            }
            throw invalid(file, "is not well-formed XML: " + reason(e));
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
