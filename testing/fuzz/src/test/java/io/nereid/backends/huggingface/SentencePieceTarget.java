// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.InputFile;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

/** A model of SentencePiece, and the tokenizer that follows from it in the order of each family. Confined to one thread. */
public final class SentencePieceTarget implements FuzzTarget {
    /** The pieces {@code <unk>}, {@code [CLS]}, {@code [SEP]}, {@code a} and another with the mark of a space. */
    private static final String PIECES =
            "0a0e0a053c756e6b3e150000000018020a0e0a055b434c535d150000000018030a0e0a055b5345505d150000000018030a0a"
                    + "0a016115000020c018010a0d0a04e2968161150000c0bf1801";

    private static final String UNIGRAM = PIECES + "120218011a06120201021801";
    /** With the mark itself as a piece. */
    private static final String PAIRS = PIECES + "0a0c0a03e2968115000040c0180112051802980201";

    private final InputFile file = new InputFile("spm.model");

    @Override
    public void read(byte[] input) throws IOException {
        Path path = file.with(input);
        for (TokenizerKind kind : List.of(TokenizerKind.XLM_ROBERTA, TokenizerKind.CAMEMBERT, TokenizerKind.ALBERT)) {
            SpecialTokens special = SpecialTokens.read(file.folder(), Map.of(), kind);
            if (new SentencePieceTokenizer(path, kind, special).text(false, 0).isEmpty()) {
                throw new IllegalStateException("a tokenizer without text");
            }
        }
    }

    @Override
    public List<byte[]> seeds() {
        return List.of(HexFormat.of().parseHex(UNIGRAM), HexFormat.of().parseHex(PAIRS));
    }
}
