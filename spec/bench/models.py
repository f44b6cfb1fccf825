"""models.py BUILD [FILTER]: whole models, each beside ONNX Runtime with optimisations off on one thread, in turns, on the
same inputs. Prints the time of a run, the peak memory of a process that loads and runs it, and their ratios; wanted:
2 at most for time, 1.2 for memory. Then the time that optimising ViT-B/16 takes; wanted: 0.5 s.

models.py --peer MODEL FOLDER COUNT DIM=SIZE... is the other side: makes the inputs, reads our results if they are there,
prints seconds and how far off our results are."""
import os
import re
import subprocess
import sys
import tempfile

TURNS = 2
SHARED = os.environ.get("PERILUNE_SHARED", "../shared")
SEQUENCE = ["N=1", "S=128"]

# What to call it, where from, sizes of its dims, how often to run it in a turn.
CASES = {
    "ResNet-50": ("resnet50", ["N=1"], 20),
    "MobileNetV2": ("mobilenetv2", ["N=1"], 100),
    "BERT-base, 128 tokens": ("bert", SEQUENCE, 8),
    "ViT-B/16": ("vit", ["N=1"], 6),
    "GPT-2, 128 tokens": ("gpt2", SEQUENCE, 6),
    "LSTM, 128 tokens": ("lstm", SEQUENCE, 20),
    "light_resnet50": (os.path.join(SHARED, "models/light_resnet50/model.onnx"), [], 20),
}


def make_input(numpy, declared, sizes):
    """Tokens are 0 and 1: every vocabulary has them, and a mask may be made of them."""
    shape = [d if isinstance(d, int) else sizes[d] for d in declared.shape]
    random = numpy.random.default_rng(0)
    if declared.type == "tensor(int64)":
        return random.integers(0, 2, shape)
    return random.standard_normal(shape, dtype=numpy.float32)


def input_file(folder, name):
    return os.path.join(folder, "inputs", re.sub(r"\W", "_", name) + ".npy")


def peer(path, folder, count, *dims):
    import time

    import numpy
    import onnxruntime

    sizes = {name: int(size) for name, size in (d.split("=") for d in dims)}
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds = {i.name: make_input(numpy, i, sizes) for i in session.get_inputs()}
    for name, value in feeds.items():
        numpy.save(input_file(folder, name), value)
    best = 1e9
    for _ in range(int(count)):
        start = time.perf_counter()
        results = session.run(None, feeds)
        best = min(best, time.perf_counter() - start)
    off = 0.0
    for i, b in enumerate(results):
        ours = os.path.join(folder, "outputs", f"output_{i}.npy")
        if os.path.exists(ours):
            off = max(off, float(numpy.max(numpy.abs(numpy.load(ours) - b)) / max(1, numpy.max(numpy.abs(b)))))
    for name in feeds:
        print(f"{name}={input_file(folder, name)}")
    print(best, off)


def cost(command):
    """What a process prints, and its peak memory in bytes."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    lines = process.stdout.read().splitlines()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{command[0]} ended with {status}")
    return lines, usage.ru_maxrss * 1024


def run_ours(perilune, path, folder, count, inputs):
    feeds = [word for line in inputs for word in ("--input", line)]
    lines, memory = cost([perilune, "run", path, *feeds, "--time", "--repeat", str(count), "--npy", "-o",
                          os.path.join(folder, "outputs")])
    amount, unit = re.search(r"run ([\d.]+) (\w+)", lines[-1]).groups()
    return float(amount) * {"s": 1, "ms": 1e-3, "us": 1e-6}[unit], memory


def compare(perilune, name, path, dims, count, folder):
    os.mkdir(os.path.join(folder, "inputs"))
    ours, theirs = [], []
    for _ in range(TURNS):
        lines, memory = cost([sys.executable, __file__, "--peer", path, folder, str(count), *dims])
        seconds, off = map(float, lines.pop().split())
        theirs.append((seconds, memory))
        ours.append(run_ours(perilune, path, folder, count, lines))
    seconds, memory = (min(x) for x in zip(*ours))
    peer_seconds, peer_memory = (min(x) for x in zip(*theirs))
    print(f"{name:24} {peer_seconds * 1e3:9.1f} ms {seconds * 1e3:9.1f} ms {seconds / peer_seconds:6.2f}"
          f" {peer_memory / 1e6:8.0f} MB {memory / 1e6:8.0f} MB {memory / peer_memory:6.2f}"
          + ("" if off < 1e-3 else f"  differs: {off}"), flush=True)


def run(perilune, name, source, dims, count, folder):
    path = source
    if not source.endswith(".onnx"):
        path = os.path.join(folder, "model.onnx")
        subprocess.run([perilune, "zoo", source, "-o", path], check=True)
    elif not os.path.exists(source):
        return
    try:
        compare(perilune, name, path, dims, count, folder)
    except RuntimeError as error:
        print(f"{name:24} {error}", flush=True)


def optimise(perilune, build, folder):
    path = os.path.join(folder, "vit.onnx")
    subprocess.run([perilune, "zoo", "vit", "-o", path], check=True)
    measure = os.path.join(build, "spec/bench/measure")
    result = subprocess.run([measure, "3", perilune, "opt", "-q", path, "-o", os.path.join(folder, "out.onnx")],
                            check=True, capture_output=True, text=True).stdout.split()
    print(f"opt of ViT-B/16: {float(result[0]):.3f} s, {float(result[1]) / 1e6:.0f} MB")


def main(build, pattern=""):
    perilune = os.path.join(build, "bin/perilune")
    print(f"{'':24} {'onnxruntime':>12} {'perilune':>12} {'ratio':>6} {'onnxruntime':>11} {'perilune':>11} {'ratio':>6}")
    for name, (source, dims, count) in CASES.items():
        if pattern in name:
            with tempfile.TemporaryDirectory(dir=build) as folder:
                run(perilune, name, source, dims, count, folder)
    with tempfile.TemporaryDirectory(dir=build) as folder:
        optimise(perilune, build, folder)


if sys.argv[1] == "--peer":
    peer(*sys.argv[2:])
else:
    main(*sys.argv[1:])
