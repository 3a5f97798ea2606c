#!/usr/bin/env python3
"""Makes folders without tokenizer.json, and what transformers and SentencePiece make of texts with them.

    python3 -m venv VENV && VENV/bin/pip install transformers sentencepiece protobuf
    VENV/bin/python make_tokenizers.py ../resources/models.zip ../resources/tokenizers.zip

A folder has the files of a tokenizer, a config.json and an expected.json. The tokenizers of "roberta" and "deberta" have the tokens of the
models of models.zip, so that those run with them.
"""

import io
import json
import pathlib
import shutil
import sys
import tempfile
import zipfile

import sentencepiece
import transformers as t
from sentencepiece import sentencepiece_model_pb2 as proto

OUT = pathlib.Path(tempfile.mkdtemp())
MODELS = zipfile.ZipFile(sys.argv[1])
TEXTS = [
    "the cat sat on the mat .", "  two  spaces\tand a tab \n", "I love Paris , a BIG house of 1,234,567 x", "naïve cafés ﬁt Ａ１ ② — ``so'' it's",
    "漢字 かな 😀 unknown", "", " ", "the <mask> sat on [MASK].", "▁the cat", "don't we'll you've", "<s> the [CLS] cat </s>",
]
CORPUS = ["the cat sat on the mat", "a man lives in paris and works for acme", "i love the big house", "it is not very good", "two cafes fit the tab",
          "where is the cat", "john works in the park in 1,234 days", "the film was good , and the food was bad"] * 3


def train(kind="unigram", **options):
    """A small model with a table of few characters: the usual one has 240 kB."""
    table = OUT / "table.tsv"
    rules = {"ﬁ": "fi", "Ａ": "A", "１": "1", "②": "2", "\t": " ", "\n": " ", "é": "e"}
    table.write_text("".join(f"{' '.join(f'{ord(c):X}' for c in a)}\t{' '.join(f'{ord(c):X}' for c in b)}\n" for a, b in rules.items()))
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=model, vocab_size=options.pop("vocab_size", 90), model_type=kind, normalization_rule_tsv=str(table),
        hard_vocab_limit=False, minloglevel=2, num_threads=1, **options)
    table.unlink()
    whole = proto.ModelProto.FromString(model.getvalue())
    # What the trainer was given says nothing about the tokens.
    for field in ("input", "model_prefix"):
        whole.trainer_spec.ClearField(field)
    return whole


def save(name, files, config, tokenizer, texts=TEXTS):
    folder = OUT / name
    folder.mkdir()
    for file, content in files.items():
        (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode() if isinstance(content, str) else json.dumps(content).encode())
    (folder / "config.json").write_text(json.dumps(config))
    tok = tokenizer(folder)
    pairs = [[texts[0], "i love it"], ["it", texts[2]]]
    both = [tok(*p, return_token_type_ids=True) for p in pairs]
    ids = [tok(x)["input_ids"] for x in texts]
    expected = {"texts": texts, "ids": ids, "decoded": [tok.decode(x, skip_special_tokens=True) for x in ids], "pairs": pairs,
                "pair_ids": [p["input_ids"] for p in both], "pair_types": [p["token_type_ids"] for p in both]}
    (folder / "expected.json").write_text(json.dumps(expected, separators=(",", ":"), ensure_ascii=False))


class Pieces:
    """SentencePiece itself, between the marks of BERT. Transformers 5 reads no table of characters for DeBERTa, with which its models have been trained."""

    def __init__(self, model):
        self.own = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
        self.first, self.last = self.own.piece_to_id("[CLS]"), self.own.piece_to_id("[SEP]")

    def __call__(self, text, pair=None, return_token_type_ids=True):
        ids = [self.first, *self.own.encode(text), self.last]
        second = [] if pair is None else [*self.own.encode(pair), self.last]
        return {"input_ids": ids + second, "token_type_ids": [0] * len(ids) + [1] * len(second)}

    def decode(self, ids, skip_special_tokens):
        return "".join(self.own.id_to_piece(i) for i in ids if i not in (self.first, self.last, self.own.unk_id())).replace("\u2581", " ").removeprefix(" ")


def auto(folder):
    return t.AutoTokenizer.from_pretrained(folder)


def roberta():
    bpe = json.loads(MODELS.read("bpe.json"))["model"]
    merges = "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in bpe["merges"])
    vocabulary = json.dumps(bpe["vocab"], ensure_ascii=False)
    mask = {"mask_token": {"content": "<mask>", "lstrip": True, "rstrip": False, "normalized": False, "single_word": False}}
    # With the token for masks as the tokenizers of transformers 4 have it, and write it.
    save("roberta", {"vocab.json": vocabulary, "merges.txt": merges, "special_tokens_map.json": mask}, {"model_type": "roberta", "vocab_size": len(bpe["vocab"]) + 2}, auto)
    save("roberta-added", {
        "vocab.json": vocabulary, "merges.txt": merges, "special_tokens_map.json": mask | {"extra_special_tokens": ["[CLS]"]},
        "added_tokens.json": {"unknown": len(bpe["vocab"]), "[CLS]": len(bpe["vocab"]) + 1},
        "tokenizer_config.json": {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": True}}, {"model_type": "xlm-roberta", "vocab_size": 500}, auto)


def words():
    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", "[UNK]", *"abcdefghijklmnopqrstuvwxyz0123456789.,'`", *("##" + c for c in "abcdefghijklmnopqrstuvwxyz0123456789"),
                  "the", "cat", "sat", "love", "<mask>"]
    save("mpnet", {"vocab.txt": "\n".join(vocabulary) + "\n"}, {"model_type": "mpnet", "vocab_size": len(vocabulary)}, auto)


def sentence_pieces():
    fairseq = dict(unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
    model = train(**fairseq)
    save("xlm-roberta", {"sentencepiece.bpe.model": model.SerializeToString(), "special_tokens_map.json": {
        "mask_token": {"content": "<mask>", "lstrip": True, "rstrip": False, "normalized": False, "single_word": False}}},
        {"model_type": "xlm-roberta", "vocab_size": len(model.pieces) + 2}, auto)
    # Of its pieces <unk>, <s> and </s> the first is replaced.
    save("camembert", {"sentencepiece.bpe.model": model.SerializeToString()}, {"model_type": "camembert", "vocab_size": len(model.pieces) + 5}, auto)
    bert = dict(pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, pad_piece="<pad>", control_symbols=["[CLS]", "[SEP]", "[MASK]"])
    model = train(**bert)
    save("albert", {"spiece.model": model.SerializeToString(), "special_tokens_map.json": {
        "mask_token": {"content": "[MASK]", "lstrip": True, "rstrip": False, "normalized": False, "single_word": False}}},
        {"model_type": "albert", "vocab_size": len(model.pieces)}, auto)
    save("albert-cased", {"spiece.model": model.SerializeToString(), "tokenizer_config.json": {"do_lower_case": False, "keep_accents": True}},
         {"model_type": "albert", "vocab_size": len(model.pieces)}, auto)
    # As the checkpoints of DeBERTa have it: the mask is not among the pieces.
    unigram = json.loads(MODELS.read("unigram.json"))["model"]["vocab"]
    model = proto.ModelProto()
    for piece, score in unigram:
        if piece != "[MASK]":
            model.pieces.add(piece=piece, score=score, type=2 if piece == "[UNK]" else 3 if piece.startswith("[") else 1)
    model.trainer_spec.model_type = 1
    model.trainer_spec.unk_id = 3
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.remove_extra_whitespaces = True
    save("deberta", {"spm.model": model.SerializeToString(), "tokenizer_config.json": {"do_lower_case": True, "vocab_type": "spm", "unk_id": 3}},
         {"model_type": "deberta-v2", "vocab_size": len(unigram)}, auto)
    marks = dict(pad_id=0, pad_piece="[PAD]", unk_id=3, unk_piece="[UNK]", bos_id=1, bos_piece="[CLS]", eos_id=2, eos_piece="[SEP]")
    for name, kind in (("deberta-table", "unigram"), ("deberta-pairs", "bpe")):
        model = train(kind, **marks)
        save(name, {"spm.model": model.SerializeToString(), "tokenizer_config.json": {"tokenizer_class": "DebertaV2Tokenizer", "vocab_type": "spm"}},
             {"model_type": "deberta-v2", "vocab_size": len(model.pieces) + 10}, lambda folder: Pieces(model), [x for x in TEXTS if "<" not in x and x[:1] != "\u2581"])


def main():
    roberta()
    words()
    sentence_pieces()
    with zipfile.ZipFile(sys.argv[2], "w") as archive:
        for file in sorted(f for f in OUT.rglob("*") if f.is_file()):
            archive.writestr(zipfile.ZipInfo(str(file.relative_to(OUT))), file.read_bytes(), zipfile.ZIP_DEFLATED, 9)
    shutil.rmtree(OUT)


main()
