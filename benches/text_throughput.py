#!/usr/bin/env python3
"""Tokens of real text that a BERT-Mini learns from in a second: `wqk train`, which packs documents one after the other, beside
transformers' BertForMaskedLM on documents that are cut and padded to the same length, as the structure paper's code does.

    python3 benches/text_throughput.py --wqk target/release/wqk --text train.txt --vocab vocab.txt [--backends flex tch]

TEXT is plain, a document a paragraph; VOCAB a WordPiece vocabulary. Both take batches of 8 × 512, AdamW, 15 % masked,
dropout 0.1, tokenising included, the median of the updates after two that warm up. Padding is not counted. Needs Python 3.10, torch,
tokenizers and transformers."""
import argparse, csv, itertools, os, statistics, subprocess, sys, tempfile, time

BATCH, LENGTH = 8, 512


def ours(args, backend):
    with tempfile.TemporaryDirectory() as folder:
        recipe = os.path.join(folder, "recipe.toml")
        with open(recipe, "w") as file:
            file.write(f"""
name = "throughput"
seeds = [0]
objective = {{ kind = "masked", rate = 0.15 }}
model = {{ kind = "text", size = "mini" }}
data = {{ kind = "text", paths = ["{os.path.abspath(args.text)}"], length = {LENGTH}, held_out = 0.002 }}
tokenizer = {{ kind = "file", path = "{os.path.abspath(args.vocab)}" }}
train = {{ steps = {args.steps + 2}, batch_size = {BATCH}, accumulation = 1, eval_every = 0 }}
score = {{ every = 0 }}
""")
        environment = os.environ | {"WQK_CACHE": os.path.join(folder, "cache")}
        command = [args.wqk, "train", recipe, "--quiet", "--backend", backend, "--threads", str(args.threads), "--out", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        with open(os.path.join(folder, "throughput-seed0", "steps.csv")) as file:
            rows = list(csv.DictReader(file))[1:]
    pairs = itertools.pairwise(rows)
    return statistics.median(float(row["tokens"]) / (float(row["seconds"]) - float(before["seconds"])) for before, row in pairs)


def padded(args):
    import torch
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    tokenizer = BertWordPieceTokenizer(args.vocab, lowercase=True)
    tokenizer.enable_truncation(LENGTH)
    tokenizer.enable_padding(length=LENGTH)
    config = BertConfig(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024)
    model = BertForMaskedLM(config).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-5, weight_decay=0.01)
    with open(args.text) as file:
        paragraphs = (list(lines) for blank, lines in itertools.groupby(file, lambda line: not line.strip()) if not blank)
        documents = [" ".join(map(str.strip, lines)) for lines in itertools.islice(paragraphs, BATCH * (args.steps + 2))]
    rates = []
    for start in range(0, len(documents) - BATCH + 1, BATCH):
        begin = time.perf_counter()
        encoded = tokenizer.encode_batch(documents[start : start + BATCH])
        ids = torch.tensor([e.ids for e in encoded])
        seen = torch.tensor([e.attention_mask for e in encoded])
        masked = (torch.rand(ids.shape) < 0.15) & (seen == 1)
        labels = torch.where(masked, ids, torch.full_like(ids, -100))
        optimiser.zero_grad()
        model(input_ids=torch.where(masked, torch.full_like(ids, 103), ids), attention_mask=seen, labels=labels).loss.backward()
        optimiser.step()
        rates.append(int(seen.sum()) / (time.perf_counter() - begin))
    return statistics.median(rates[2:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wqk", default="target/release/wqk")
    parser.add_argument("--text", required=True)
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--backends", nargs="+", default=["flex"])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--steps", type=int, default=30)
    args = parser.parse_args()
    rates = {f"wqk, {backend}": ours(args, backend) for backend in args.backends}
    rates["transformers, padded"] = base = padded(args)
    print("| program | tokens of text a second | ratio |\n| --- | ---: | ---: |")
    for name, rate in rates.items():
        print(f"| {name} | {rate:.0f} | {rate / base:.2f} |")


main()
