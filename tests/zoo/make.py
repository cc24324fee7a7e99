"""Makes the expected scores of `tests/zoo/*.json` with PyPI transformers: see capture.py for the method.

    python -m venv venv && venv/bin/pip install torch==2.9.0 transformers==5.24.0 torchvision==0.24.0 numpy
    venv/bin/python make.py [NAME…]

For each model of models.py: the library builds and saves it, every tensor of the saved file is replaced by
`weights.draw(seed, name, shape)`, the library loads that file, and a forward pass is watched. Written are the
configuration, the file's tensor names, types and shapes, the seed and the scores, so that a test can rebuild the file.
"""
import json, os, struct, sys, tempfile, warnings

os.environ["HF_HUB_OFFLINE"] = "1"
import re
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

import capture, models, weights

HERE = os.path.dirname(os.path.abspath(__file__))
OFFSETS = (1, -2, 5)
DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64, "BOOL": torch.bool}


def header(path):
    with open(path, "rb") as f:
        (size,) = struct.unpack("<Q", f.read(8))
        tensors = json.loads(f.read(size))
    tensors.pop("__metadata__", None)
    return {n: [t["dtype"], t["shape"]] for n, t in sorted(tensors.items())}


def special_inputs(kind):
    """Forward passes of the models whose inputs are their own."""
    ids, pixels = models.ids, models.pixels
    g = torch.Generator().manual_seed(4)
    rand = lambda *s: torch.rand(*s, generator=g, dtype=torch.float64)
    b = models.BATCH
    return {
        "whisper": lambda m: m(input_features=rand(b, 8, 12), decoder_input_ids=ids(m, n=5), use_cache=False),
        "speech_to_text": lambda m: m(input_features=rand(b, 12, 8), decoder_input_ids=ids(m, n=5), use_cache=False),
        "speecht5": lambda m: m(input_ids=ids(m), decoder_input_values=rand(b, 5, 8), speaker_embeddings=rand(b, 8), use_cache=False),
        "musicgen": lambda m: m(input_ids=ids(m), decoder_input_ids=ids(m, vocab=30, n=5).repeat(2, 1), use_cache=False),
        "clip": lambda m: m(input_ids=ids(m), pixel_values=rand(b, 3, 16, 16)),
        "git": lambda m: m(input_ids=ids(m), pixel_values=rand(b, 3, 16, 16), use_cache=False),
        "blip": lambda m: m(input_ids=ids(m), pixel_values=rand(b, 3, 16, 16)),
        "sam": lambda m: m.vision_encoder(rand(b, 3, 16, 16)),
        "gemma3": lambda m: m(input_ids=torch.cat([torch.full((b, 4), 60), ids(m, vocab=58)], 1), pixel_values=rand(b, 3, 16, 16),
                              token_type_ids=torch.cat([torch.ones(b, 4), torch.zeros(b, models.N)], 1).long(), use_cache=False),
        "mllama": lambda m: m(input_ids=ids(m, vocab=58), pixel_values=rand(b, 1, 1, 3, 16, 16), aspect_ratio_ids=torch.ones(b, 1).long(),
                              aspect_ratio_mask=torch.ones(b, 1, 1).long(), cross_attention_mask=torch.ones(b, models.N, 1, 1).long(), use_cache=False),
        "ast": lambda m: m(input_values=rand(b, 16, 16)),
    }[kind]


def musicgen_config():
    return hf.MusicgenConfig(
        text_encoder=hf.T5Config(vocab_size=61, d_model=48, d_kv=10, d_ff=40, num_layers=2, num_heads=6),
        audio_encoder=hf.EncodecConfig(num_filters=4, upsampling_ratios=[2], hidden_size=8, codebook_size=32, codebook_dim=8, num_lstm_layers=1),
        decoder=hf.MusicgenDecoderConfig(vocab_size=32, max_position_embeddings=32, hidden_size=48, num_hidden_layers=3, num_attention_heads=4,
                                         ffn_dim=40, num_codebooks=2, pad_token_id=0, bos_token_id=0))


def nearest(layers):
    """The smallest relative distance of any row's or column's norm from its threshold."""
    measured = [m for l in layers for m in (l.get("plain"), l.get("fold_norm"), *l.get("offsets", {}).values()) if m]
    return min(m["near"] for m in measured)


def make(name, cls, config, stacks, inputs, options=(), seed=None):
    """`options`: f16, bf16 (the saved type), single (the forward pass in f32: some code of the library's refuses f64),
    sequence-first (see capture.run), offsets (score rotary offsets too), scaled (the rotation also scales, so that
    there is no unrotated form to see at offset 0)."""
    seed = weights.fnv1a(name) & 0xFFFFFFFF if seed is None else seed
    config = musicgen_config() if config == "musicgen" else config
    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        model = cls(config)
        model = model.to({"f16": torch.float16, "bf16": torch.bfloat16}.get((set(options) & {"f16", "bf16"} or {""}).pop(), torch.float32))
        model.save_pretrained(folder)
        path = os.path.join(folder, "model.safetensors")
        tensors = header(path)
        saved_values = load_file(path)
        filled = {}
        for tensor, (dtype, shape) in tensors.items():
            # (rotary frequencies that a library saves are no weights)
            if dtype.startswith(("F", "BF")) and not tensor.endswith("inv_freq"):
                filled[tensor] = torch.from_numpy(weights.draw(seed, tensor, shape).copy()).reshape(shape).to(DTYPES[dtype])
            else:
                filled[tensor] = saved_values[tensor].clone()
        save_file(filled, path, {"format": "pt"})
        saved = json.load(open(os.path.join(folder, "config.json")))
        precision = torch.float32 if "single" in options else torch.float64
        model, info = cls.from_pretrained(folder, attn_implementation="eager", output_loading_info=True, dtype=precision)
        assert not info["missing_keys"] and not info["mismatched_keys"], info
        model = model.to(precision).eval()
    forward = special_inputs(inputs) if isinstance(inputs, str) else inputs
    patterns = {stack: re.compile(p) for stack, p in stacks.items()}
    wanted = lambda n, m: any(p.search(n) for p in patterns.values())
    calls = capture.run(model, lambda: forward(model), wanted, seed, "sequence-first" in options)
    counts, layers = {}, []
    for call in calls:
        stack = next(s for s, p in patterns.items() if p.search(call.name))
        index = counts[stack] = counts.get(stack, -1) + 1
        a, b, residual = call.factors()
        i = 0
        layer = {"stack": stack, "index": index, "module": call.name, "d_model": a.shape[2], "n_heads": len(a), "n_kv_heads": call.key_heads(),
                 "head_dim": a.shape[3], "calls": len(call.norms), "residual": float(f"{residual:.1e}")}
        if "scaled" not in options:
            layer["plain"] = capture.measure(a, b, i, i)
        if call.gain is not None and "scaled" not in options:
            layer["fold_norm"] = capture.measure(a, b, i, i, call.gain)
        if "offsets" in options:
            layer["offsets"] = {}
            for n in OFFSETS:
                i = max(0, -n)
                layer["offsets"][str(n)] = capture.measure(a, b, i, i + n)
        layers.append(layer)
    assert set(counts) == set(stacks), f"seen {counts}"
    if nearest(layers) < 1e-5:  # a norm that rounding could move over the threshold: other weights
        return make(name, cls, config, stacks, inputs, options, seed + 1)
    for key in ("id2label", "label2id", "transformers_version"):
        saved.pop(key, None)
    return {"name": name, "class": cls.__name__, "made_with": f"transformers {hf.__version__}, torch {torch.__version__.split('+')[0]}",
            "seed": seed, "config": saved, "tensors": tensors, "layers": layers}


def main():
    warnings.filterwarnings("ignore")
    hf.logging.set_verbosity_error()
    torch.set_num_threads(1)
    failed = []
    for entry in models.MODELS:
        name = entry[0]
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        try:
            result = make(*entry)
        except Exception as error:
            import traceback
            failed.append(name)
            where = traceback.extract_tb(error.__traceback__)[-1]
            print(f"{name}: FAILED {type(error).__name__}: {str(error)[:300]} ({where.filename.split('/')[-1]}:{where.lineno})")
            continue
        with open(os.path.join(HERE, f"{name}.json"), "w") as f:
            json.dump(result, f, separators=(",", ":"))
            f.write("\n")
        print(f"{name}: {[(l['stack'], l['index'], l['n_heads'], l['n_kv_heads'], l['head_dim'], l['calls'], 'fold_norm' in l) for l in result['layers']]} "
              f"residual {max(l['residual'] for l in result['layers'])} near {nearest(result['layers'])}", flush=True)
    if failed:
        sys.exit(f"failed: {' '.join(failed)}")


if __name__ == "__main__":
    main()
