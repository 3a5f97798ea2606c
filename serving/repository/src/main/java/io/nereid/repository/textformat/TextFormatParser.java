// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.textformat;

import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.problem.SourcePosition;
import io.nereid.repository.textformat.TextFormatLexer.Kind;
import io.nereid.repository.textformat.TextFormatLexer.Token;
import io.nereid.repository.textformat.TextFormatNode.Block;
import io.nereid.repository.textformat.TextFormatNode.Field;
import io.nereid.repository.textformat.TextFormatNode.Scalar;
import java.util.ArrayList;
import java.util.List;

/**
 * A recursive descent parser of protobuf's text format: fields with or without colon, blocks in {@code {}} or
 * {@code <>}, lists in brackets, adjacent strings, separators {@code ,} and {@code ;} or none, comments. Takes time
 * linear in the length of the text; the nesting depth is limited, so that no input overflows the stack. Confined to one
 * thread.
 */
public final class TextFormatParser {
    private static final int MAX_DEPTH = 50;

    private final TextFormatLexer lexer;
    private Token token;

    private TextFormatParser(String text) throws TextFormatException {
        lexer = new TextFormatLexer(text);
        token = lexer.next();
    }

    /**
     * Parses a whole text.
     *
     * @param into receives the fields; after an error, those that came before it
     */
    public static void parse(String text, List<Field> into) throws TextFormatException {
        TextFormatParser parser = new TextFormatParser(text);
        while (parser.token.kind() != Kind.END) {
            if (parser.token.is('}') || parser.token.is('>')) {
                throw new TextFormatException(
                        parser.token.at(),
                        "unexpected " + parser.token.shown() + ", nothing is open here",
                        "remove it");
            }
            into.add(parser.field(0));
        }
    }

    private Field field(int depth) throws TextFormatException {
        SourcePosition at = token.at();
        if (token.is('[')) {
            throw new TextFormatException(
                    at,
                    "unexpected '[' (expected: the name of a field)",
                    "extensions and Any are not part of this format");
        }
        if (token.kind() != Kind.WORD) {
            throw new TextFormatException(
                    at, "unexpected " + token.shown() + " (expected: the name of a field)", "write 'field: value'");
        }
        String name = token.text();
        advance();
        boolean colon = token.is(':');
        if (colon) {
            advance();
        }
        List<TextFormatNode> values = new ArrayList<>(1);
        boolean list = token.is('[');
        if (list) {
            list(values, name, depth);
        } else if (token.is('{') || token.is('<')) {
            values.add(block(depth + 1));
        } else if (colon) {
            values.add(scalar(name));
        } else {
            throw new TextFormatException(
                    token.at(),
                    "unexpected " + token.shown() + " after " + ProblemCollector.quote(name)
                            + " (expected: ':' or '{')",
                    "write '" + name + ": value' or '" + name + " { … }'");
        }
        if (token.is(',') || token.is(';')) {
            advance();
        }
        return new Field(name, colon, list, values, at);
    }

    private void list(List<TextFormatNode> values, String name, int depth) throws TextFormatException {
        SourcePosition open = token.at();
        advance();
        if (token.is(']')) {
            advance();
            return;
        }
        while (true) {
            values.add(token.is('{') || token.is('<') ? block(depth + 1) : scalar(name));
            if (token.is(']')) {
                advance();
                return;
            }
            if (!token.is(',')) {
                throw new TextFormatException(
                        token.at(),
                        "unexpected " + token.shown() + " in the list that starts in line " + open.line()
                                + " (expected: ',' or ']')",
                        "separate its members with ',' and close it with ']'");
            }
            advance();
        }
    }

    private Block block(int depth) throws TextFormatException {
        SourcePosition open = token.at();
        if (depth > MAX_DEPTH) {
            throw new TextFormatException(
                    open, "more than " + MAX_DEPTH + " blocks inside each other", "nest less deeply");
        }
        char close = token.is('{') ? '}' : '>';
        advance();
        List<Field> fields = new ArrayList<>();
        while (!token.is(close)) {
            if (token.kind() == Kind.END) {
                throw new TextFormatException(
                        open, "the block that starts here has no end", "close it with '" + close + "'");
            }
            fields.add(field(depth));
        }
        advance();
        return new Block(fields, open);
    }

    private Scalar scalar(String field) throws TextFormatException {
        SourcePosition at = token.at();
        if (token.kind() == Kind.STRING) {
            String text = token.text();
            advance();
            if (token.kind() == Kind.STRING) {
                StringBuilder joined = new StringBuilder(text);
                for (; token.kind() == Kind.STRING; advance()) {
                    joined.append(token.text());
                }
                text = joined.toString();
            }
            return new Scalar(TextFormatNode.Kind.STRING, text, false, at);
        }
        boolean negative = token.is('-');
        if (negative) {
            advance();
        }
        if (token.kind() != Kind.NUMBER && token.kind() != Kind.WORD) {
            throw new TextFormatException(
                    token.at(),
                    "unexpected " + token.shown() + " (expected: a value of " + ProblemCollector.quote(field) + ")",
                    "write a value");
        }
        TextFormatNode.Kind kind = token.kind() == Kind.NUMBER ? TextFormatNode.Kind.NUMBER : TextFormatNode.Kind.WORD;
        Scalar scalar = new Scalar(kind, token.text(), negative, at);
        advance();
        return scalar;
    }

    private void advance() throws TextFormatException {
        token = lexer.next();
    }
}
