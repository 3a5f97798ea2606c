// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pmml;

import java.io.StringReader;
import java.io.StringWriter;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.xml.namespace.QName;
import javax.xml.stream.XMLEventFactory;
import javax.xml.stream.XMLEventReader;
import javax.xml.stream.XMLEventWriter;
import javax.xml.stream.XMLInputFactory;
import javax.xml.stream.XMLOutputFactory;
import javax.xml.stream.XMLStreamException;
import javax.xml.stream.events.Attribute;
import javax.xml.stream.events.StartElement;
import javax.xml.stream.events.XMLEvent;
import org.jspecify.annotations.Nullable;

/**
 * Adds the target to the output of a document that has output fields, but none with the predicted value. JPMML, which KServe's
 * server runs, answers the targets before the output fields; the library here answers the output fields alone. Stateless.
 */
final class TargetOutput {
    private static final QName NAME = new QName("name");
    private static final QName FEATURE = new QName("feature");
    private static final String PREDICTED = "predictedValue";
    /** The depths of a model, of its parts, and of what these consist of; the root has depth 1. */
    private static final int MODEL = 2;

    private TargetOutput() {}

    /** What the document says about its first model. */
    private static final class Facts {
        private final Map<String, StartElement> fields = new HashMap<>();
        private final Set<String> targets = new LinkedHashSet<>();
        private final Set<String> outputs = new HashSet<>();
        private boolean predicted;
        private int models;
    }

    /**
     * The document with an output field for each target, before the others; the same text if it has all that already, or
     * has no output fields, so that the library makes them.
     *
     * @throws XMLStreamException if it is not well-formed
     */
    static String of(String text) throws XMLStreamException {
        Facts facts = facts(text);
        facts.targets.removeAll(facts.outputs);
        if (facts.predicted || facts.outputs.isEmpty() || facts.targets.isEmpty()) {
            return text;
        }
        StringWriter result = new StringWriter(text.length() + 256);
        XMLEventWriter writer = XMLOutputFactory.newDefaultFactory().createXMLEventWriter(result);
        XMLEventReader reader = reader(text);
        int depth = 0;
        boolean done = false;
        while (reader.hasNext()) {
            XMLEvent event = reader.nextEvent();
            writer.add(event);
            if (event.isStartElement()) {
                depth++;
                StartElement element = event.asStartElement();
                if (!done && depth == MODEL + 1 && local(element).equals("Output")) {
                    done = true;
                    for (String target : facts.targets) {
                        field(writer, element, target, facts.fields.get(target));
                    }
                }
            } else if (event.isEndElement()) {
                depth--;
            }
        }
        writer.close();
        return result.toString();
    }

    private static void field(
            XMLEventWriter writer, StartElement output, String target, @Nullable StartElement declared)
            throws XMLStreamException {
        XMLEventFactory events = XMLEventFactory.newDefaultFactory();
        QName name = output.getName();
        writer.add(events.createStartElement(name.getPrefix(), name.getNamespaceURI(), "OutputField"));
        writer.add(events.createAttribute("name", target));
        for (String attribute : List.of("optype", "dataType")) {
            Attribute of = declared == null ? null : declared.getAttributeByName(new QName(attribute));
            if (of != null) {
                writer.add(events.createAttribute(attribute, of.getValue()));
            }
        }
        writer.add(events.createAttribute("feature", PREDICTED));
        writer.add(events.createEndElement(name.getPrefix(), name.getNamespaceURI(), "OutputField"));
    }

    private static Facts facts(String text) throws XMLStreamException {
        Facts facts = new Facts();
        XMLEventReader reader = reader(text);
        int depth = 0;
        String part = "";
        while (reader.hasNext()) {
            XMLEvent event = reader.nextEvent();
            if (event.isEndElement()) {
                depth--;
            } else if (event.isStartElement()) {
                depth++;
                StartElement element = event.asStartElement();
                String name = local(element);
                if (depth == MODEL) {
                    part = "";
                    facts.models +=
                            name.endsWith("Model") || name.endsWith("Network") || name.equals("Scorecard") ? 1 : 0;
                } else if (depth == MODEL + 1) {
                    part = name;
                }
                if (depth == MODEL + 1 && name.equals("DataField")) {
                    facts.fields.put(value(element, NAME), element);
                } else if (depth == MODEL + 2 && facts.models <= 1) {
                    part(facts, part, element);
                }
            }
        }
        return facts;
    }

    private static void part(Facts facts, String part, StartElement element) {
        String name = local(element);
        if (part.equals("MiningSchema") && name.equals("MiningField")) {
            String usage = value(element, new QName("usageType"));
            if (usage.equals("target") || usage.equals("predicted")) {
                facts.targets.add(value(element, NAME));
            }
        } else if (part.equals("Output") && name.equals("OutputField")) {
            String feature = value(element, FEATURE);
            facts.outputs.add(value(element, NAME));
            // The feature of a field that names none is the predicted value.
            facts.predicted |= feature.isEmpty() || feature.equals(PREDICTED);
        }
    }

    private static String local(StartElement element) {
        return element.getName().getLocalPart();
    }

    private static String value(StartElement element, QName name) {
        Iterator<Attribute> all = element.getAttributes();
        while (all.hasNext()) {
            Attribute one = all.next();
            if (one.getName().equals(name)) {
                return one.getValue();
            }
        }
        return "";
    }

    private static XMLEventReader reader(String text) throws XMLStreamException {
        XMLInputFactory factory = XMLInputFactory.newDefaultFactory();
        factory.setProperty(XMLInputFactory.SUPPORT_DTD, false);
        factory.setProperty(XMLInputFactory.IS_SUPPORTING_EXTERNAL_ENTITIES, false);
        factory.setProperty("jdk.xml.maxElementDepth", "0");
        return factory.createXMLEventReader(new StringReader(text));
    }
}
