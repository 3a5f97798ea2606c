#!/usr/bin/env python3
"""Makes a small decoder with random weights as save_pretrained writes it, and prints what transformers generates: decoder.py FOLDER TEXT"""

import json
import sys

import torch
import transformers as t
from tokenizers import Tokenizer, models, pre_tokenizers

folder, text = sys.argv[1:]
words = ["[UNK]", "the", "cat", "sat", "on", "mat", "dog", "ran"]
tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
torch.manual_seed(1)
model = t.GPT2LMHeadModel(t.GPT2Config(vocab_size=len(words), n_positions=32, n_embd=16, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=None))
model.generation_config = t.GenerationConfig(max_new_tokens=6, do_sample=False, pad_token_id=0, bos_token_id=1)
model.save_pretrained(folder)
t.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[UNK]").save_pretrained(folder)
print(json.dumps(t.pipeline("text-generation", model=folder)(text)))
