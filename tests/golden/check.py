"""Loads folders that `wqk` exported with PyPI transformers, and compares the logits with ours.

    WQK_EXPORT_TO=out cargo test --lib exported_folders
    venv/bin/python check.py out/*

Each folder has a `check.safetensors` beside the model: an input, and the logits that our model gave for it. The
program fails where a weight is missing, left over, or a logit differs by more than 1e-4.
"""
import os, sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers as hf
from safetensors.torch import load_file

failed = False
for folder in sys.argv[1:]:
    config = hf.AutoConfig.from_pretrained(folder)
    model, info = getattr(hf, config.architectures[0]).from_pretrained(folder, output_loading_info=True)
    check = load_file(os.path.join(folder, "check.safetensors"))
    with torch.no_grad():
        if "pixels" in check:
            logits = model.eval()(pixel_values=check["pixels"]).logits
        else:
            logits = model.eval()(input_ids=check["ids"].long()).logits
    assert logits.shape == check["logits"].shape, (logits.shape, check["logits"].shape)
    difference = (logits - check["logits"]).abs().max().item()
    left = {key: sorted(info[key]) for key in ("missing_keys", "unexpected_keys", "mismatched_keys") if info[key]}
    tokens = ""
    if os.path.exists(os.path.join(folder, "tokenizer.json")):
        tokenizer = hf.AutoTokenizer.from_pretrained(folder)
        tokens = f", tokenizer of {len(tokenizer)}, mask {tokenizer.mask_token!r}"
    print(f"{folder}: {config.architectures[0]}, largest difference of {logits.numel()} logits {difference:.1e}{tokens} {left or ''}")
    failed |= difference > 1e-4 or bool(left) or logits.abs().max().item() < 0.1
sys.exit(failed)
