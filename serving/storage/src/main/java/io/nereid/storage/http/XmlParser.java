// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.http;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import javax.xml.XMLConstants;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.jspecify.annotations.Nullable;
import org.w3c.dom.Element;
import org.w3c.dom.Node;
import org.xml.sax.SAXException;

/** Parses the small XML responses of stores. Document types are disallowed, against XXE attacks. Stateless. */
public final class XmlParser {
    private XmlParser() {}

    public static Element root(byte[] text) throws IOException {
        try {
            DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
            factory.setFeature(XMLConstants.FEATURE_SECURE_PROCESSING, true);
            factory.setFeature("http://apache.org/xml/features/disallow-doctype-decl", true);
            factory.setExpandEntityReferences(false);
            factory.setNamespaceAware(true);
            var builder = factory.newDocumentBuilder();
            builder.setErrorHandler(null);
            return builder.parse(new ByteArrayInputStream(text)).getDocumentElement();
        } catch (SAXException | ParserConfigurationException e) {
            throw new IOException("the answer is not XML", e);
        }
    }

    public static List<Element> children(Element parent, String name) {
        List<Element> children = new ArrayList<>();
        for (Node node = parent.getFirstChild(); node != null; node = node.getNextSibling()) {
            if (node instanceof Element element && name.equals(element.getLocalName())) {
                children.add(element);
            }
        }
        return children;
    }

    public static @Nullable Element child(Element parent, String name) {
        List<Element> children = children(parent, name);
        return children.isEmpty() ? null : children.get(0);
    }

    /** The text of a child, or an empty one. */
    public static String text(@Nullable Element parent, String name) {
        Element child = parent == null ? null : child(parent, name);
        return child == null ? "" : child.getTextContent();
    }

    /** The code of an error response of S3 or Azure, or an empty text. */
    public static String code(byte[] answer) {
        try {
            return text(root(answer), "Code");
        } catch (IOException e) {
            return "";
        }
    }
}
