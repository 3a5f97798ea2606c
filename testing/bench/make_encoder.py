# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the model of the row huggingface: VENV/bin/python make_encoder.py [FOLDER].

    python3 -m venv VENV && VENV/bin/pip install torch 'transformers<4.58' optimum optimum-onnx       # exported by Optimum
    python3 -m venv VENV && VENV/bin/pip install torch transformers onnx onnxscript                   # by PyTorch alone

An encoder of the size of all-MiniLM-L6 (six layers of 384, random weights) as save_pretrained writes it, and beside it, in the folder onnx,
what Optimum makes of it where it is installed, else torch.onnx.export. A word of its vocabulary is one token.
"""

import pathlib
import sys

import torch
import transformers as t
from tokenizers import Tokenizer, models, pre_tokenizers, processors

try:
    from optimum.exporters.onnx import main_export
except ImportError:
    main_export = None

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "target" / "encoder")
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(30517))]
vocabulary = {word: i for i, word in enumerate(words)}
tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
tokenizer.post_processor = processors.TemplateProcessing(
    single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])

torch.manual_seed(1)
config = t.BertConfig(
    vocab_size=len(words), hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536, attn_implementation="eager")
model = t.BertModel(config, add_pooling_layer=False).eval()
model.save_pretrained(folder)
t.PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, model_max_length=512, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
    mask_token="[MASK]").save_pretrained(folder)
(folder / "onnx").mkdir(exist_ok=True)
if main_export is None:
    exporter = "torch.onnx"
    names = ["input_ids", "attention_mask", "token_type_ids"]
    example = (torch.ones((2, 16), dtype=torch.long), torch.ones((2, 16), dtype=torch.long), torch.zeros((2, 16), dtype=torch.long))
    torch.onnx.export(
        model, example, str(folder / "onnx" / "model.onnx"), input_names=names, output_names=["last_hidden_state"], opset_version=18,
        dynamic_shapes={name: {0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens", max=512)} for name in names}, dynamo=True)
else:
    exporter = "Optimum"
    main_export(str(folder), output=str(folder / "onnx"), task="feature-extraction")
print(folder, "exported by", exporter)
