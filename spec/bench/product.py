"""product.py BUILD [FILTER]: matrix products and convolutions of well-known models, each beside ONNX Runtime with
optimisations off on one thread, in turns. Prints both times in milliseconds and their ratio; wanted: 1.5 at most."""
import os
import subprocess
import sys
import tempfile
import time

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper

SECONDS = 0.1  # a side and turn
TURNS = 3


def node(op, shapes, **attributes):
    names = ["xwb"[i] for i in range(len(shapes))]
    return helper.make_node(op, names, ["y"], **attributes), names, shapes


def matmul(a, b):
    return node("MatMul", [a, b])


def gemm(m, k, n):
    return node("Gemm", [[m, k], [n, k], [n]], transB=1)


def conv(channels, size, filters, window, stride=1, group=1, batch=1, dilation=1):
    pad = (window - 1) // 2 * dilation
    return node("Conv", [[batch, channels, size, size], [filters, channels // group, window, window], [filters]],
                strides=[stride] * 2, pads=[pad] * 4, group=group, dilations=[dilation] * 2)


def unconv(channels, size, filters, window, stride, pad):
    return node("ConvTranspose", [[1, channels, size, size], [channels, filters, window, window], [filters]],
                strides=[stride] * 2, pads=[pad] * 4)


CASES = {
    "bert 768x768": matmul([1, 128, 768], [768, 768]),
    "bert 768x3072": matmul([1, 128, 768], [768, 3072]),
    "bert 3072x768": matmul([1, 128, 3072], [3072, 768]),
    "bert scores": matmul([1, 12, 128, 64], [1, 12, 64, 128]),
    "bert context": matmul([1, 12, 128, 128], [1, 12, 128, 64]),
    "one row 768x3072": matmul([1, 768], [768, 3072]),
    "four rows 768x768": matmul([4, 768], [768, 768]),
    "classifier": gemm(1, 2048, 1000),
    "classifier, batch 32": gemm(32, 2048, 1000),
    "square 512": matmul([512, 512], [512, 512]),
    "resnet 7x7/2": conv(3, 224, 64, 7, 2),
    "resnet 3x3 64": conv(64, 56, 64, 3),
    "resnet 3x3 128": conv(128, 28, 128, 3),
    "resnet 3x3/2 128": conv(128, 56, 128, 3, 2),
    "resnet 3x3 256": conv(256, 14, 256, 3),
    "resnet 3x3 512": conv(512, 7, 512, 3),
    "resnet 1x1 64-256": conv(64, 56, 256, 1),
    "resnet 1x1 256-64": conv(256, 56, 64, 1),
    "resnet 1x1 1024-256": conv(1024, 14, 256, 1),
    "resnet 1x1 512-2048": conv(512, 7, 2048, 1),
    "resnet 1x1/2 256-512": conv(256, 56, 512, 1, 2),
    "mobilenet 3x3/2": conv(3, 224, 32, 3, 2),
    "mobilenet depthwise 32": conv(32, 112, 32, 3, 1, 32),
    "mobilenet depthwise 96/2": conv(96, 112, 96, 3, 2, 96),
    "mobilenet depthwise 384": conv(384, 14, 384, 3, 1, 384),
    "mobilenet depthwise 960": conv(960, 7, 960, 3, 1, 960),
    "mobilenet 1x1 16-96": conv(16, 112, 96, 1),
    "mobilenet 1x1 96-24": conv(96, 56, 24, 1),
    "grouped 3x3 4x32": conv(128, 28, 128, 3, 1, 4),
    "grouped 3x3 8x30": conv(240, 28, 240, 3, 1, 8),
    "grouped 1x1 8x30": conv(240, 28, 240, 1, 1, 8),
    "dilated 3x3": conv(64, 56, 64, 3, 1, 1, 1, 2),
    "vgg 3x3 64 at 224": conv(64, 224, 64, 3),
    "transposed 4x4/2": unconv(64, 28, 32, 4, 2, 1),
    "transposed 2x2/2": unconv(128, 28, 64, 2, 2, 0),
}


def model_of(made, names, shapes):
    value = helper.make_tensor_value_info
    inputs = [value(n, TensorProto.FLOAT, s) for n, s in zip(names, shapes)]
    graph = helper.make_graph([made], "case", inputs, [value("y", TensorProto.FLOAT, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def peer_time(session, feeds):
    best, end = 1e9, time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        session.run(None, feeds)
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def our_time(program, paths, blas):
    return float(subprocess.run([program, *paths, str(SECONDS), blas], check=True, stdout=subprocess.PIPE).stdout)


def run(program, name, case, folder, blases):
    paths = [os.path.join(folder, n) for n in ("model.onnx", "inputs", "output")]
    random = numpy.random.default_rng(7)
    # Weights lie in the model for ONNX Runtime, which packs them when it loads, and are inputs here.
    made, names, shapes = case
    model = model_of(*case)
    feeds = {n: random.standard_normal(s, dtype=numpy.float32) for n, s in zip(names, shapes)}
    onnx.save(model, paths[0])
    with open(paths[1], "wb") as file:
        for n in names:
            file.write(feeds[n].tobytes())
    activations = 2 if made.op_type == "MatMul" and len(shapes[1]) > 2 else 1
    for n in names[activations:]:
        model.graph.initializer.append(onnx.numpy_helper.from_array(feeds[n], n))
    del model.graph.input[activations:]
    session = session_of(model)
    live = {n: feeds[n] for n in names[:activations]}
    ours, peer = dict.fromkeys(blases, 1e9), 1e9
    for _ in range(TURNS):
        for blas in blases:
            ours[blas] = min(ours[blas], our_time(program, paths, blas))
        peer = min(peer, peer_time(session, live))
    wanted = session.run(None, live)[0]
    got = numpy.fromfile(paths[2], dtype=numpy.float32).reshape(wanted.shape)
    off = numpy.max(numpy.abs(got - wanted)) / max(1, numpy.max(numpy.abs(wanted)))
    figures = "".join(f"{ms:9.3f} ms {ms / peer:5.2f}" for ms in ours.values())
    print(f"{name:26} {peer:9.3f} ms {figures}" + ("" if off < 1e-4 else f"  differs: {off}"), flush=True)


def installed(program):
    """The products that there are: our own, and OpenBLAS where the machine has it."""
    made = subprocess.run([program, "", "", "", "", "openblas"], capture_output=True, text=True)
    return ["own"] if "cannot be opened" in made.stderr else ["own", "openblas"]


def main(build, pattern=""):
    program = os.path.join(build, "spec/bench/product")
    blases = installed(program)
    print(f"{'':26} {'onnxruntime':>12}" + "".join(f"{blas:>12} ratio" for blas in blases))
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            if pattern in name:
                run(program, name, case, folder, blases)


main(*sys.argv[1:])
