#!/usr/bin/env python3
"""A training step of BERT-Mini beside PyTorch's and that of transformers' own model: seconds, ratio, peak memory.

    python3 benches/train_step_peer.py --ours BENCH --peer bert_step.py [--backends flex tch] [--rounds 4] [--steps 10]

BENCH is the program that `cargo bench --bench train_step --no-run` names. The programs take turns, each with `--steps` steps
after two that warm up, `--rounds` times; the median of the rounds' medians is compared. The peer is run as
`PYTHON PEER masked|transformers STEPS` and prints, as ours, `NAME: X s a step, peak Y MB, …`."""
import argparse, re, statistics, subprocess, sys


def run(command):
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds, peak = re.search(r": ([0-9.]+) s a step, peak ([0-9]+) MB", out).groups()
    return float(seconds), int(peak)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--backends", nargs="+", default=["flex"])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=10)
    args = parser.parse_args()
    programs = {name: [args.ours, name, str(args.steps)] for name in args.backends}
    programs |= {name: [args.python, args.peer, name, str(args.steps)] for name in ("masked", "transformers")}
    runs = {name: [] for name in programs}
    for _ in range(args.rounds):
        for name, command in programs.items():
            runs[name].append(run(command))
    median = {name: statistics.median(seconds for seconds, _ in all) for name, all in runs.items()}
    print("| program | seconds a step | speed beside `masked` | beside `transformers` | peak MB |")
    print("| --- | --- | --- | --- | --- |")
    for name, all in runs.items():
        beside = " | ".join(f"{median[peer] / median[name]:.2f}" for peer in ("masked", "transformers"))
        print(f"| {name} | {median[name]:.4f} | {beside} | {max(peak for _, peak in all)} |")


main()
