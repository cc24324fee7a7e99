#!/usr/bin/env python3
"""`wqk score` beside another program on the same checkpoints: seconds, ratio, private memory, agreement of the scores.

    python3 benches/scoring_peer.py --wqk target/release/wqk --peer score_dense.py --make make_checkpoint.py

The peer is run as `PYTHON PEER FOLDER [--heads] --threads N` and prints one line of JSON with `seconds` (loading included,
imports not), `first` and `last`, the symmetry and the directionality (excess) of the first and the last layer. The maker is
run as `PYTHON MAKE FOLDER SHAPE` and writes a random checkpoint. Of `wqk` the whole process is timed. The two take turns,
after one run of `wqk` that brings the file into the page cache; the best of each is compared. Needs Linux for the memory."""
import argparse, json, os, struct, subprocess, sys, time

# name: layers, width, query heads, key heads, width of a head; what the peer is asked for
SHAPES = {
    "llama3-8b-8l": (8, 4096, 32, 8, 128, ("whole", "heads")),
    "bert-large": (24, 1024, 16, 16, 64, ("whole", "heads")),
    "llama3-405b-1l": (1, 16384, 128, 8, 128, ()),
}
ALLOWED = 64 << 20  # bytes beyond the idle process and the queries and keys of three layers


def tiny(folder):
    """A checkpoint that needs no memory to speak of, to see what the program takes when idle."""
    os.makedirs(folder, exist_ok=True)
    names = [f"model.layers.0.self_attn.{p}_proj.weight" for p in "qk"]
    header = json.dumps({n: {"dtype": "F32", "shape": [4, 4], "data_offsets": [64 * i, 64 * i + 64]} for i, n in enumerate(names)}).encode()
    values = struct.pack("<32f", *(float(i % 7 + (i % 5 == 0)) for i in range(32)))
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + values)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump({"model_type": "llama", "hidden_size": 4, "num_attention_heads": 2, "num_hidden_layers": 1}, file)


def run_ours(args, folder, heads):
    """Seconds, the largest private memory that was seen, and the report."""
    command = [args.wqk, "score", "--quiet", "--format", "json", "--backend", args.backend, "--threads", str(args.threads), folder]
    begin, peak = time.perf_counter(), 0
    process = subprocess.Popen(command + ["--heads"] * heads, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    status = f"/proc/{process.pid}/status"
    os.set_blocking(process.stdout.fileno(), False)
    out = b""
    while process.poll() is None:
        try:
            with open(status) as file:
                peak = max([peak] + [int(line.split()[1]) << 10 for line in file if line.startswith("RssAnon:")])
        except (FileNotFoundError, ProcessLookupError):
            pass
        out += process.stdout.read() or b""
        time.sleep(0.004)
    seconds = time.perf_counter() - begin
    os.set_blocking(process.stdout.fileno(), True)
    out += process.stdout.read()
    if process.returncode:
        sys.exit(f"{' '.join(command)}: {process.stderr.read().decode()}")
    return seconds, peak, json.loads(out)


def run_peer(args, folder, heads):
    command = [args.python, args.peer, folder, "--threads", str(args.threads)] + ["--heads"] * heads
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wqk", default="target/release/wqk", help="the program to time")
    parser.add_argument("--peer", help="the program to compare with; without it only wqk is timed")
    parser.add_argument("--make", help="the program that makes checkpoints that are not there yet")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of both")
    parser.add_argument("--folder", default="target/scoring_peer", help="where the checkpoints are")
    parser.add_argument("--backend", default="flex")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--shape", action="append", choices=SHAPES, help="only these")
    args = parser.parse_args()
    tiny(os.path.join(args.folder, "tiny"))
    idle = max(run_ours(args, os.path.join(args.folder, "tiny"), False)[1] for _ in range(3))
    print(f"{args.threads} threads, {args.backend}, best of {args.repeat}; idle {idle >> 20} MB\n")
    print("| checkpoint | scores | peer (s) | wqk (s) | ratio | s a layer | private memory (MB) | allowed (MB) | largest difference |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in args.shape or SHAPES:
        layers, width, heads, groups, head, peers = SHAPES[name]
        folder = os.path.join(args.folder, name)
        if not os.path.exists(os.path.join(folder, "config.json")):
            if not args.make:
                sys.exit(f"there is no {folder}: give --make")
            subprocess.run([args.python, args.make, folder, name], check=True)
        run_ours(args, folder, False)
        allowed = idle + ALLOWED + 3 * 4 * width * head * (heads + groups)
        for mode in ("whole", "heads"):
            ours, theirs, peak, gap = [], [], 0, None
            for _ in range(args.repeat):
                seconds, memory, report = run_ours(args, folder, mode == "heads")
                ours.append(seconds)
                peak = max(peak, memory)
                if args.peer and mode in peers:
                    peer = run_peer(args, folder, mode == "heads")
                    theirs.append(peer["seconds"])
                    found = [report["models"][0]["layers"][i] for i in (0, -1)]
                    pairs = [(l["symmetry"], l["directionality"]["excess"]) for l in found]
                    gap = max(abs(a - b) for ours_, peer_ in zip(pairs, (peer["first"], peer["last"])) for a, b in zip(ours_, peer_))
            best = min(ours)
            cells = [name, mode, f"{min(theirs):.2f}" if theirs else "", f"{best:.2f}", f"{min(theirs) / best:.1f}" if theirs else ""]
            cells += [f"{best / layers:.3f}", f"{peak >> 20}", f"{allowed >> 20}", f"{gap:.1e}" if gap is not None else ""]
            print("| " + " | ".join(cells) + " |", flush=True)
            if peak > allowed:
                sys.exit(f"{name}: {peak >> 20} MB of private memory, {allowed >> 20} MB allowed")


main()
