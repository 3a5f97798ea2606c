#!/usr/bin/env python3
"""Makes the models of the tests: encoders of all architectures and tasks with random weights, and what transformers computes.

    python3 -m venv VENV && VENV/bin/pip install torch transformers sentence-transformers
    VENV/bin/python make.py ../resources/models.zip

The archive has three tokenizers and many folders. Every folder is as save_pretrained writes it, with an expected.json: texts, and the model's own results for them.
"""

import copy
import json
import pathlib
import shutil
import sys
import tempfile
import zipfile

import torch
import transformers as t
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, decoders

OUT = pathlib.Path(tempfile.mkdtemp())
WORDS = (
    "a the man woman cat dog sat ran on in mat park paris london lives works for acme is was good bad not very "
    "film food i you love hate it and of to who where what capital france city big small house hugging face . , ? !"
).split()
TEXTS = ["the cat sat on the mat .", "i love it !", "John lives in Paris and works for Acme , a very big house of food ."]
LONG = "the cat sat on the mat in the park . a man lives in paris and works for acme . john is a very big man . "
PAIRS = [["where is the cat ?", "the cat sat on the mat in the park ."], ["who lives in paris ?", "a man lives in paris ."]]


def wordpiece():
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [c for c in "abcdefghijklmnopqrstuvwxyz"]
    vocab = specials + letters + ["##" + c for c in letters] + [w for w in WORDS if len(w) > 1 or not w.isalpha()]
    vocab = {w: i for i, w in enumerate(dict.fromkeys(vocab))}
    tok = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    tok.normalizer = normalizers.BertNormalizer(lowercase=True)
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tok.decoder = decoders.WordPiece()
    tok.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocab["[CLS]"]), ("[SEP]", vocab["[SEP]"])])
    return t.PreTrainedTokenizerFast(
        tokenizer_object=tok, model_max_length=32, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]", model_input_names=["input_ids", "token_type_ids", "attention_mask"])


def bpe():
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {w: i for i, w in enumerate(specials + alphabet)}
    merges = []
    for w in ["the", "cat", "in", "on", "is", "and", "paris", "love"]:
        left = "Ġ"
        for c in w:
            merges.append((left, c))
            left += c
            vocab.setdefault(left, len(vocab))
    merges = list(dict.fromkeys(merges))
    tok = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>"))
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    tok.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return t.PreTrainedTokenizerFast(
        tokenizer_object=tok, model_max_length=36, unk_token="<unk>", pad_token="<pad>", cls_token="<s>", bos_token="<s>",
        eos_token="</s>", sep_token="</s>", mask_token=t.AddedToken("<mask>", lstrip=True),
        model_input_names=["input_ids", "attention_mask"])


def unigram():
    """As SentencePiece's models: a word begins with a mark in the place of the space before it."""
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    pieces = [(s, 0.0) for s in ("[PAD]", "[CLS]", "[SEP]", "[UNK]")]
    pieces += [(w, -6.0) for w in ["\u2581", *letters, *".,?!"]]
    pieces += [("\u2581" + w, -3.0) for w in WORDS if len(w) > 1] + [("\u2581i", -3.0), ("\u2581a", -3.0), ("\u2581lov", -4.0), ("\u2581par", -4.0)]
    pieces.append(("[MASK]", 0.0))
    return t.DebertaV2Tokenizer(vocab=pieces, unk_id=3, model_max_length=32, do_lower_case=True)


WP, BPE, UNIGRAM = wordpiece(), bpe(), unigram()
COMMON = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, max_position_embeddings=40)
FAMILIES = {
    "bert": (t.BertConfig(vocab_size=len(WP), **COMMON), WP),
    "roberta": (t.RobertaConfig(vocab_size=len(BPE), pad_token_id=1, bos_token_id=0, eos_token_id=2, type_vocab_size=1, **COMMON), BPE),
    "distilbert": (t.DistilBertConfig(vocab_size=len(WP), dim=16, n_layers=2, n_heads=2, hidden_dim=24, max_position_embeddings=40), WP),
    "mpnet": (t.MPNetConfig(vocab_size=len(BPE), pad_token_id=1, bos_token_id=0, eos_token_id=2, **COMMON), BPE),
    "albert": (t.AlbertConfig(vocab_size=len(WP), embedding_size=8, num_hidden_groups=1, hidden_act="gelu_new", **COMMON), WP),
    "electra": (t.ElectraConfig(vocab_size=len(WP), embedding_size=8, **COMMON), WP),
    "modernbert": (t.ModernBertConfig(
        vocab_size=len(WP), hidden_size=16, num_hidden_layers=4, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=40, local_attention=8, global_attn_every_n_layers=3, pad_token_id=0, cls_token_id=2,
        sep_token_id=3, bos_token_id=2, eos_token_id=3, reference_compile=False, attn_implementation="eager"), WP),
    "xlm-roberta": (t.XLMRobertaConfig(vocab_size=len(BPE), pad_token_id=1, bos_token_id=0, eos_token_id=2, type_vocab_size=1, **COMMON), BPE),
    "camembert": (t.CamembertConfig(vocab_size=len(BPE), pad_token_id=1, bos_token_id=0, eos_token_id=2, type_vocab_size=1, **COMMON), BPE),
    # As version 3 of DeBERTa has it, with few buckets so that long distances share them.
    "deberta": (t.DebertaV2Config(
        vocab_size=len(UNIGRAM), relative_attention=True, position_buckets=8, max_relative_positions=-1, share_att_key=True,
        norm_rel_ebd="layer_norm", pos_att_type="p2c|c2p", position_biased_input=False, type_vocab_size=0, **COMMON), UNIGRAM),
}
TASKS = {
    "classify": t.AutoModelForSequenceClassification,
    "tokens": t.AutoModelForTokenClassification,
    "mask": t.AutoModelForMaskedLM,
    "answer": t.AutoModelForQuestionAnswering,
    "embed": t.AutoModel,
}


def randomize(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            scale = 0.35 if p.dim() > 1 else 0.2
            noise = torch.randn(p.shape, generator=generator) * scale
            value = noise + 1 if "norm" in name.lower() and name.endswith("weight") else noise
            # With 16 bits of zeros in each number the archive is half as large.
            p.copy_(value.bfloat16().float())


def rounded(x):
    return json.loads(json.dumps(x), parse_float=lambda s: round(float(s), 6))


def takes_types(model):
    """Some models do not take the types that the tokenizer gives."""
    return model.config.model_type not in ("distilbert", "modernbert", "mpnet")


def expect(model, tok, task):
    # Of SentencePiece's tokens the pipeline treats those that the vocabulary lacks in a way of its own.
    texts = TEXTS + ["the cat sat in 7 parks & london ."] if task == "tokens" and tok is UNIGRAM else TEXTS
    return expected_of(model, tok, task, texts)


def expected_of(model, tok, task, originals):
    if task == "answer":
        enc = tok([p[0] for p in PAIRS], [p[1] for p in PAIRS], padding=True, truncation=True, return_tensors="pt")
    else:
        texts = [x.replace("cat", tok.mask_token).replace("love", tok.mask_token).replace("Paris", tok.mask_token) for x in originals] if task == "mask" else originals
        enc = tok(texts, padding=True, truncation=True, return_tensors="pt")
    if not takes_types(model):
        enc.pop("token_type_ids", None)
    with torch.no_grad():
        out = model(**enc)
    expected = {"input_ids": enc["input_ids"].tolist()}
    if task == "answer":
        expected["pairs"] = PAIRS
        expected["start"] = out.start_logits.tolist()
        expected["end"] = out.end_logits.tolist()
        long = [["where is the cat ?", 3 * LONG], ["who lives in paris ?", LONG.replace("cat", "dog") + LONG]]
        expected["long"] = long
        expected["answers"] = answers(model, tok, PAIRS + long)
    elif task == "embed":
        hidden = out.last_hidden_state
        mask = enc["attention_mask"].unsqueeze(-1).float()
        mean = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
        expected["texts"] = originals
        expected["embedding"] = torch.nn.functional.normalize(mean, dim=1).tolist()
    elif task == "mask":
        expected["texts"] = texts
        rows = (enc["input_ids"] == tok.mask_token_id).nonzero()
        expected["top"] = [out.logits[i, j].softmax(-1).topk(3).indices.tolist() for i, j in rows]
        expected["scores"] = [out.logits[i, j].softmax(-1).topk(3).values.tolist() for i, j in rows]
        expected["rows"] = [int(i) for i, _ in rows]
        expected["decoded"] = [tok.decode(out.logits[i, j].argmax(-1).unsqueeze(0)) for i, j in rows]
    else:
        expected["texts"] = originals
        expected["logits"] = out.logits.tolist()
    if task == "tokens":
        expected["entities"] = {}
        for strategy in ("none", "simple", "first", "average", "max"):
            pipe = t.pipeline("token-classification", model=model, tokenizer=tok, aggregation_strategy=strategy, ignore_labels=["O"])
            expected["entities"][strategy] = json.loads(json.dumps(pipe(originals), default=float))
    return expected


def share(folder):
    """The tokenizers are the same in many folders: each is kept once, in a file that the tests copy."""
    text = (folder / "tokenizer.json").read_text()
    kind = next(kind for kind in ("WordPiece", "Unigram", "BPE") if f'"{kind}"' in text).lower()
    (OUT / f"{kind}.json").write_text(json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False))
    (folder / "tokenizer.json").unlink()


def answers(model, tok, pairs):
    """The pipeline for answers left transformers in version 5: what it does in version 4, with its usual parameters.

    Windows over a long text overlap by half of their length, or 128; of each the twelve most probable spans count, extended to words, and the
    scores of equal answers are added."""
    results = []
    for question, context in pairs:
        length = min(tok.model_max_length, 384)
        windows = tok(question, context, truncation="only_second", max_length=length, stride=min(length // 2, 128), return_overflowing_tokens=True)
        found = {}
        for w, enc in enumerate(windows.encodings):
            places = [i for i, s in enumerate(enc.sequence_ids) if s == 1]
            allowed = places + [i for i, number in enumerate(enc.ids) if number == tok.cls_token_id]
            with torch.no_grad():
                out = model(**{k: torch.tensor([windows[k][w]]) for k in tok.model_input_names if k != "token_type_ids" or takes_types(model)})
            masked = torch.full((2, len(enc.ids)), -10000.0)
            masked[0, allowed] = out.start_logits[0, allowed]
            masked[1, allowed] = out.end_logits[0, allowed]
            start, end = masked.softmax(-1)
            start[0] = end[0] = 0
            score = torch.triu(start[:, None] * end[None, :]).tril(14).flatten()
            for flat in score.argsort(descending=True)[:12].tolist():
                i, j = flat // len(enc.ids), flat % len(enc.ids)
                if i in places and j in places:
                    first = enc.word_to_chars(enc.token_to_word(i), 1)[0]
                    last = enc.word_to_chars(enc.token_to_word(j), 1)[1]
                    known = found.setdefault(context[first:last].lower(), {"answer": context[first:last], "score": 0.0, "start": first, "end": last})
                    known["score"] += float(score[flat])
        results.append(max(found.values(), key=lambda a: a["score"]))
    return results


def save(name, model, tok, expected):
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    tok.save_pretrained(folder)
    share(folder)
    (folder / "expected.json").write_text(json.dumps(rounded(expected), separators=(",", ":")))
    return folder


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for f, (family, (config, tok)) in enumerate(FAMILIES.items()):
        few = family in ("xlm-roberta", "camembert")
        for k, (task, cls) in enumerate(TASKS.items()):
            if few and task != "classify":
                continue
            c = copy.deepcopy(config)
            if task in ("mask", "answer", "embed") and family != "bert":
                # One layer, so that the files are small.
                setattr(c, "n_layers" if family == "distilbert" else "num_hidden_layers", 1)
                if family == "modernbert":
                    c.layer_types = c.layer_types[:1]
            if task == "classify":
                c.num_labels = 3
                c.id2label = {0: "negative", 1: "neutral", 2: "positive"}
                c.label2id = {v: k for k, v in c.id2label.items()}
            if task == "tokens":
                c.num_labels = 5
                c.id2label = dict(enumerate(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]))
                c.label2id = {v: k for k, v in c.id2label.items()}
            kwargs = {"attn_implementation": "eager"}
            try:
                model = cls.from_config(c, **kwargs)
            except ValueError as e:
                print("skipped", family, task, e)
                continue
            randomize(model, 100 * f + k)
            model.eval()
            save(f"{family}-{task}", model, tok, expect(model, tok, task))
    variants()
    with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for file in sorted(f for f in OUT.rglob("*") if f.is_file()):
            archive.writestr(zipfile.ZipInfo(str(file.relative_to(OUT))), file.read_bytes(), zipfile.ZIP_DEFLATED, 9)
    shutil.rmtree(OUT)


def variants():
    """Other files and types of the same model."""
    config, tok = FAMILIES["bert"]
    c = copy.deepcopy(config)
    c.num_labels = 1
    model = t.AutoModelForSequenceClassification.from_config(c, attn_implementation="eager")
    randomize(model, 7)
    model.eval()
    enc = tok([p[0] for p in PAIRS], [p[1] for p in PAIRS], padding=True, return_tensors="pt")
    with torch.no_grad():
        logits = model(**enc).logits
    folder = save("cross-encoder", model, tok, {"pairs": PAIRS, "logits": logits.tolist(), "scores": logits.sigmoid().flatten().tolist()})
    torch.save({k: v.clone() for k, v in model.state_dict().items()}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()

    for kind, dtype in (("fp16", torch.float16), ("bf16", torch.bfloat16)):
        model = t.AutoModelForSequenceClassification.from_config(copy.deepcopy(config), attn_implementation="eager")
        randomize(model, 8)
        model = model.to(dtype)
        wide = t.AutoModelForSequenceClassification.from_config(copy.deepcopy(config), attn_implementation="eager")
        wide.load_state_dict({k: v.float() for k, v in model.state_dict().items()})
        wide.eval()
        save(kind, model, tok, expect(wide, tok, "classify"))
    c = copy.deepcopy(config)
    c.problem_type = "multi_label_classification"
    model = t.AutoModelForSequenceClassification.from_config(c, attn_implementation="eager")
    randomize(model, 9)
    model.eval()
    folder = OUT / "sharded"
    save("sharded", model, tok, expect(model, tok, "classify"))
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="10KB")
    sentences()
    debertas()


def debertas():
    """What the versions of DeBERTa differ in."""
    older = dict(relative_attention=True, position_buckets=-1, share_att_key=False, norm_rel_ebd="none", pos_att_type=["c2p"], position_biased_input=True, type_vocab_size=2)
    for k, (kind, task, changes) in enumerate((
            ("conv", "classify", dict(conv_kernel_size=3, conv_act="gelu", pos_att_type=["p2c", "c2p"], share_att_key=False)),
            ("absolute", "classify", dict(older, embedding_size=8, max_relative_positions=6)),
            ("p2c", "classify", dict(pos_att_type=["p2c"], share_att_key=False, position_buckets=6)),
            ("plain", "classify", dict(older, relative_attention=False)),
            ("newer", "mask", dict(legacy=False)))):
        config, tok = FAMILIES["deberta"]
        c = copy.deepcopy(config)
        for name, value in changes.items():
            setattr(c, name, value)
        c.num_labels = 3
        model = TASKS[task].from_config(c, attn_implementation="eager")
        randomize(model, 2000 + k)
        model.eval()
        save(f"deberta-{kind}-{task}", model, tok, expect(model, tok, task))


def sentences():
    from sentence_transformers import SentenceTransformer
    from sentence_transformers import models as st_models
    config, tok = FAMILIES["bert"]
    scratch = OUT / "scratch"
    for kind, pooling in (("mean", "mean"), ("cls", "cls"), ("max", "max"), ("sqrt", "mean_sqrt_len_tokens"), ("weighted", "weightedmean"), ("last", "lasttoken")):
        model = t.AutoModel.from_config(copy.deepcopy(config), attn_implementation="eager")
        randomize(model, 11)
        model.eval()
        model.save_pretrained(scratch)
        tok.save_pretrained(scratch)
        word = st_models.Transformer(str(scratch), max_seq_length=16)
        modules = [word, st_models.Pooling(16, pooling_mode=pooling)]
        if kind == "cls":
            dense = st_models.Dense(16, 8, activation_function=torch.nn.Tanh())
            randomize(dense, 12)
            modules.append(dense)
        if kind != "max":
            modules.append(st_models.Normalize())
        st = SentenceTransformer(modules=modules, device="cpu")
        st.eval()
        folder = OUT / f"sentence-{kind}"
        shutil.rmtree(folder, ignore_errors=True)
        st.save_pretrained(str(folder), create_model_card=False)
        share(folder)
        vectors = st.encode(TEXTS).tolist()
        (folder / "expected.json").write_text(json.dumps(rounded({"texts": TEXTS, "embedding": vectors}), separators=(",", ":")))
        shutil.rmtree(scratch)


main()
