// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import io.nereid.base.ServingException;
import io.nereid.protobuf.ProtobufReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * A model file of SentencePiece: its pieces and what its texts are normalised by. Immutable.
 *
 * <p>Source of the format: SentencePiece's {@code sentencepiece_model.proto}.
 *
 * @param pieces in the order of their numbers
 * @param byPairs whether pieces are joined in pairs (BPE), not chosen by the most probable sequence (unigram)
 * @param byteFallback whether characters without a piece are pieces of their bytes
 * @param characters the compiled table of characters and what stands for them; empty when there is none
 * @param prefix whether a text gets a space before it
 */
record SentencePieceModel(
        List<Piece> pieces, boolean byPairs, boolean byteFallback, byte[] characters, boolean prefix) {
    private static final long MOST_BYTES = 256 << 20;
    private static final int MOST_CHARACTERS = 1000;
    private static final int UNIGRAM = 1;
    private static final int BPE = 2;

    /** What a piece stands for, by its number in the format. */
    enum Role {
        NORMAL,
        UNKNOWN,
        CONTROL,
        USER_DEFINED,
        UNUSED,
        BYTE
    }

    /** @param score the logarithm of a probability, or minus the rank of a pair */
    record Piece(String text, float score, Role role) {}

    /** @throws ServingException INVALID_ARGUMENT for a file that is damaged, or of a kind that no encoder has */
    static SentencePieceModel read(Path file) {
        try {
            return read(file, new Fields(FolderFile.bytes(file, MOST_BYTES)));
        } catch (ServingException e) {
            if (e.getMessage().startsWith("malformed protobuf")) {
                throw FolderFile.rejected(file, "it is not a model of SentencePiece, or is damaged: " + e.getMessage());
            }
            throw e;
        }
    }

    private static SentencePieceModel read(Path file, Fields in) {
        List<Piece> pieces = new ArrayList<>();
        int algorithm = UNIGRAM;
        boolean fallback = false;
        boolean suffix = false;
        byte[] characters = new byte[0];
        boolean prefix = true;
        boolean trims = true;
        boolean escapes = true;
        ProtobufReader reader = in.reader;
        while (reader.hasMore()) {
            int tag = reader.readTag();
            if (tag == tag(1)) {
                pieces.add(in.piece(file));
            } else if (tag == tag(2)) {
                int outer = reader.enter();
                while (reader.hasMore()) {
                    int inner = reader.readTag();
                    switch (inner) {
                        case 3 << 3 -> algorithm = (int) reader.readVarint();
                        case 24 << 3 -> suffix = reader.readVarint() != 0;
                        case 35 << 3 -> fallback = reader.readVarint() != 0;
                        default -> reader.skipField(inner);
                    }
                }
                reader.leave(outer);
            } else if (tag == tag(3)) {
                int outer = reader.enter();
                while (reader.hasMore()) {
                    int inner = reader.readTag();
                    switch (inner) {
                        case 2 << 3 | ProtobufReader.BYTES -> characters = in.bytes();
                        case 3 << 3 -> prefix = reader.readVarint() != 0;
                        case 4 << 3 -> trims = reader.readVarint() != 0;
                        case 5 << 3 -> escapes = reader.readVarint() != 0;
                        default -> reader.skipField(inner);
                    }
                }
                reader.leave(outer);
            } else {
                reader.skipField(tag);
            }
        }
        if (pieces.isEmpty()) {
            throw FolderFile.rejected(file, "it has no pieces");
        }
        if (algorithm != UNIGRAM && algorithm != BPE) {
            throw FolderFile.rejected(
                    file, "it has the model_type " + algorithm + " (expected: 1, unigram, or 2, BPE)");
        }
        if (suffix || !trims || !escapes) {
            String setting = suffix
                    ? "treat_whitespace_as_suffix true"
                    : !trims ? "remove_extra_whitespaces false" : "escape_whitespaces false";
            throw FolderFile.rejected(file, "it has " + setting + ", which encoders do not have");
        }
        return new SentencePieceModel(List.copyOf(pieces), algorithm == BPE, fallback, characters, prefix);
    }

    private static int tag(int field) {
        return field << 3 | ProtobufReader.BYTES;
    }

    /** A cursor in the file. */
    private static final class Fields {
        final ProtobufReader reader = new ProtobufReader();

        Fields(byte[] file) {
            reader.reset(ByteBuffer.wrap(file).order(ByteOrder.LITTLE_ENDIAN));
        }

        byte[] bytes() {
            byte[] bytes = new byte[reader.readLength()];
            reader.buffer().get(reader.position(), bytes);
            reader.skip(bytes.length);
            return bytes;
        }

        Piece piece(Path file) {
            String text = "";
            float score = 0;
            long type = 1;
            int outer = reader.enter();
            while (reader.hasMore()) {
                int tag = reader.readTag();
                switch (tag) {
                    case 1 << 3 | ProtobufReader.BYTES -> text = new String(bytes(), StandardCharsets.UTF_8);
                    case 2 << 3 | ProtobufReader.FIXED32 -> score = Float.intBitsToFloat(reader.readFixed32());
                    case 3 << 3 -> type = reader.readVarint();
                    default -> reader.skipField(tag);
                }
            }
            reader.leave(outer);
            if (text.isEmpty() || text.length() > MOST_CHARACTERS) {
                throw FolderFile.rejected(
                        file,
                        "it has a piece of " + text.length() + " characters (expected: 1 to " + MOST_CHARACTERS + ")");
            }
            if (type < 1 || type > Role.values().length || !Float.isFinite(score)) {
                throw FolderFile.rejected(
                        file, "its piece '" + text + "' has the type " + type + " and the score " + score);
            }
            return new Piece(text, score, Role.values()[(int) type - 1]);
        }
    }
}
