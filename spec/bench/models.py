"""models.py BUILD [FILTER]: whole models, each beside ONNX Runtime with optimisations off on one thread, in turns, on the
same inputs. Prints the time of a run, the peak memory of a process that loads and runs it, and their ratios; wanted:
2 at most for time, 1.2 for memory. Then the time that optimising ViT-B/16 takes; wanted: 0.5 s.

models.py --peer MODEL FOLDER SECONDS is the other side: reads inputs and our results, prints seconds and how far off
our results are."""
import os
import subprocess
import sys
import tempfile

SECONDS = "1.5"  # a side and turn
TURNS = 2
SHARED = os.environ.get("PERILUNE_SHARED", "../shared")
SEQUENCE = ["N=1", "S=128"]

# What to call it, where from, sizes of its dims.
CASES = {
    "ResNet-50": ("resnet50", ["N=1"]),
    "MobileNetV2": ("mobilenetv2", ["N=1"]),
    "BERT-base, 128 tokens": ("bert", SEQUENCE),
    "ViT-B/16": ("vit", ["N=1"]),
    "GPT-2, 128 tokens": ("gpt2", SEQUENCE),
    "LSTM, 128 tokens": ("lstm", SEQUENCE),
    "light_resnet50": (os.path.join(SHARED, "models/light_resnet50/model.onnx"), []),
}


def peer(path, folder, seconds):
    import time

    import numpy
    import onnxruntime

    def numbered(kind):
        names = [os.path.join(folder, f"{kind}_{i}.npy") for i in range(1, 99)]
        return [numpy.load(name) for name in names if os.path.exists(name)]

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds = dict(zip([i.name for i in session.get_inputs()], numbered("input")))
    best, stop = 1e9, time.perf_counter() + float(seconds)
    while time.perf_counter() < stop:
        start = time.perf_counter()
        results = session.run(None, feeds)
        best = min(best, time.perf_counter() - start)
    off = max(float(numpy.max(numpy.abs(a - b)) / max(1, numpy.max(numpy.abs(b)))) for a, b in zip(numbered("output"), results))
    print(best, off)


def cost(command):
    """What a process prints, and its peak memory in bytes."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    words = process.stdout.read().split()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{command[0]} ended with {status}")
    return [float(word) for word in words], usage.ru_maxrss * 1024


def compare(perilune, name, path, dims, folder):
    ours, theirs = [], []
    for _ in range(TURNS):
        (seconds,), memory = cost([perilune, "spec/bench/model.lua", path, folder, SECONDS, *dims])
        ours.append((seconds, memory))
        (seconds, off), memory = cost([sys.executable, __file__, "--peer", path, folder, SECONDS])
        theirs.append((seconds, memory))
    seconds, memory = (min(x) for x in zip(*ours))
    peer_seconds, peer_memory = (min(x) for x in zip(*theirs))
    print(f"{name:24} {peer_seconds * 1e3:9.1f} ms {seconds * 1e3:9.1f} ms {seconds / peer_seconds:6.2f}"
          f" {peer_memory / 1e6:8.0f} MB {memory / 1e6:8.0f} MB {memory / peer_memory:6.2f}"
          + ("" if off < 1e-3 else f"  differs: {off}"), flush=True)


def run(perilune, name, source, dims, folder):
    path = source
    if not source.endswith(".onnx"):
        path = os.path.join(folder, "model.onnx")
        subprocess.run([perilune, "zoo", source, "-o", path], check=True)
    elif not os.path.exists(source):
        return
    try:
        compare(perilune, name, path, dims, folder)
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
    for name, (source, dims) in CASES.items():
        if pattern in name:
            with tempfile.TemporaryDirectory(dir=build) as folder:
                run(perilune, name, source, dims, folder)
    with tempfile.TemporaryDirectory(dir=build) as folder:
        optimise(perilune, build, folder)


if sys.argv[1] == "--peer":
    peer(*sys.argv[2:])
else:
    main(*sys.argv[1:])
