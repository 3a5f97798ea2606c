// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import static io.nereid.backends.huggingface.TokenizerDocument.SPACE;
import static io.nereid.backends.huggingface.TokenizerDocument.object;
import static io.nereid.backends.huggingface.TokenizerDocument.replace;

import io.nereid.backends.huggingface.SentencePieceModel.Piece;
import io.nereid.backends.huggingface.SentencePieceModel.Role;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The {@code tokenizer.json} that follows from a model of SentencePiece: the pieces get the numbers that the encoders have been trained
 * with, and texts are normalised as SentencePiece and transformers do together. Confined to one thread.
 *
 * <p>Source: the documentation of transformers' {@code XLMRobertaTokenizer}, {@code CamembertTokenizer}, {@code AlbertTokenizer} and
 * {@code DebertaV2Tokenizer}, and of SentencePiece (numbers of pieces, normalisation).
 */
final class SentencePieceTokenizer {
    /** Pieces that are never chosen have it, as transformers gives it to them. */
    private static final double WORST = -100;

    private final Path file;
    private final SentencePieceModel model;
    private final TokenizerKind kind;
    private final SpecialTokens special;

    SentencePieceTokenizer(Path file, TokenizerKind kind, SpecialTokens special) {
        this.file = file;
        this.model = SentencePieceModel.read(file);
        this.kind = kind;
        this.special = special;
    }

    /** @param most the size of the model's vocabulary; 0 when it is not known */
    String text(boolean keepsCase, long most) {
        List<Piece> pieces = numbered();
        Map<String, Object> vocabulary = new LinkedHashMap<>();
        List<Object> scored = new ArrayList<>(pieces.size());
        long unknown = -1;
        List<String> controls = new ArrayList<>();
        for (int i = 0; i < pieces.size(); i++) {
            Piece piece = pieces.get(i);
            vocabulary.putIfAbsent(piece.text(), (long) i);
            scored.add(List.of(piece.text(), score(piece)));
            if (piece.role() == Role.UNKNOWN && unknown < 0) {
                unknown = i;
            } else if (piece.role() == Role.CONTROL || piece.role() == Role.USER_DEFINED) {
                controls.add(piece.text());
            }
        }
        if (unknown < 0) {
            throw FolderFile.rejected(file, "it has no piece for unknown characters");
        }
        if (vocabulary.size() != pieces.size()) {
            throw FolderFile.rejected(file, "it has a piece twice");
        }
        Map<String, Object> known = new LinkedHashMap<>(vocabulary);
        List<Object> added = special.added(known, controls, most);
        return TokenizerDocument.text(
                added,
                normalizer(keepsCase),
                preTokenizer(),
                TokenizerDocument.marks(file, special, kind, known),
                metaspace(),
                model.byPairs()
                        ? pairs(pieces, vocabulary, pieces.get((int) unknown).text())
                        : object(
                                "type",
                                "Unigram",
                                "unk_id",
                                unknown,
                                "vocab",
                                scored,
                                "byte_fallback",
                                model.byteFallback()));
    }

    /** The pieces in the order of the encoder's embeddings. */
    private List<Piece> numbered() {
        List<Piece> own = model.pieces();
        if (kind != TokenizerKind.XLM_ROBERTA && kind != TokenizerKind.CAMEMBERT) {
            return own;
        }
        boolean camembert = kind == TokenizerKind.CAMEMBERT;
        int replaced = camembert ? 1 : 3;
        if (own.size() <= replaced) {
            throw FolderFile.rejected(file, "it has " + own.size() + " pieces");
        }
        List<Piece> all = new ArrayList<>(own.size() + 6);
        all.add(control(camembert ? "<s>NOTUSED" : special.token("bos_token")));
        all.add(control(special.token("pad_token")));
        all.add(control(camembert ? "</s>NOTUSED" : special.token("eos_token")));
        all.add(new Piece(special.token("unk_token"), 0, Role.UNKNOWN));
        if (camembert) {
            all.add(new Piece("<unk>NOTUSED", (float) WORST, Role.CONTROL));
        }
        all.addAll(own.subList(replaced, own.size()));
        all.add(control(special.token("mask_token")));
        return all;
    }

    private static Piece control(String text) {
        return new Piece(text, 0, Role.CONTROL);
    }

    /** ALBERT's texts have commas behind numbers as pieces of their own. */
    private double score(Piece piece) {
        String text = piece.text();
        int length = text.length();
        boolean numberWithComma = kind == TokenizerKind.ALBERT
                && length >= 2
                && text.charAt(length - 1) == ','
                && Character.isDigit(text.charAt(length - 2));
        return numberWithComma ? piece.score() + WORST : piece.score();
    }

    private Object normalizer(boolean keepsCase) {
        Map<?, ?> settings = special.settings();
        List<Object> all = new ArrayList<>();
        boolean albert = kind == TokenizerKind.ALBERT;
        Object lower = settings.get("do_lower_case");
        if (albert) {
            all.add(replace("String", "``", "\""));
            all.add(replace("String", "''", "\""));
            if (!Boolean.TRUE.equals(settings.get("keep_accents"))) {
                all.add(object("type", "NFKD"));
                all.add(object("type", "StripAccents"));
            }
        }
        if (!keepsCase
                && (albert
                        ? !Boolean.FALSE.equals(lower)
                        : kind == TokenizerKind.DEBERTA && Boolean.TRUE.equals(lower))) {
            all.add(object("type", "Lowercase"));
        }
        if (model.characters().length > 0) {
            all.add(object(
                    "type",
                    "Precompiled",
                    "precompiled_charsmap",
                    Base64.getEncoder().encodeToString(model.characters())));
        }
        if (kind == TokenizerKind.DEBERTA) {
            if (model.characters().length == 0) {
                all.add(object("type", "NFC"));
            }
            all.add(replace("Regex", "\\s{2,}|[\\n\\r\\t]", " "));
            all.add(object("type", "Strip", "strip_left", true, "strip_right", true));
        }
        return TokenizerDocument.normalizers(all);
    }

    private Object preTokenizer() {
        List<Object> all = new ArrayList<>();
        if (kind != TokenizerKind.DEBERTA) {
            all.add(object("type", "WhitespaceSplit"));
        } else if (Boolean.TRUE.equals(special.settings().get("split_by_punct"))) {
            all.add(object("type", "Punctuation", "behavior", "Isolated"));
        }
        all.add(metaspace());
        return object("type", "Sequence", "pretokenizers", all);
    }

    private Object metaspace() {
        boolean prefix =
                model.prefix() && !Boolean.FALSE.equals(special.settings().get("add_prefix_space"));
        return object(
                "type",
                "Metaspace",
                "replacement",
                SPACE,
                "prepend_scheme",
                prefix ? "always" : "never",
                "split",
                true);
    }

    /** A model of joined pairs, of which those come first whose result has the better score. */
    private Object pairs(List<Piece> pieces, Map<String, Object> vocabulary, String unknown) {
        record Pair(String left, String right, float score, int number) {}

        Map<String, Integer> normal = new HashMap<>();
        for (int i = 0; i < pieces.size(); i++) {
            if (pieces.get(i).role() == Role.NORMAL) {
                normal.put(pieces.get(i).text(), i);
            }
        }
        List<Pair> found = new ArrayList<>();
        normal.forEach((text, number) -> {
            for (int split = text.offsetByCodePoints(0, 1); split < text.length(); ) {
                String left = text.substring(0, split);
                String right = text.substring(split);
                if (normal.containsKey(left) && normal.containsKey(right)) {
                    found.add(new Pair(left, right, pieces.get(number).score(), number));
                }
                split = text.offsetByCodePoints(split, 1);
            }
        });
        found.sort(Comparator.comparingDouble((Pair p) -> -p.score())
                .thenComparingInt(Pair::number)
                .thenComparing(Pair::left));
        return object(
                "type",
                "BPE",
                "unk_token",
                unknown,
                "fuse_unk",
                true,
                "byte_fallback",
                model.byteFallback(),
                "vocab",
                vocabulary,
                "merges",
                found.stream().map(p -> p.left() + " " + p.right()).toList());
    }
}
