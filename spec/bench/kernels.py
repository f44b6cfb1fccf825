"""kernels.py BUILD [PART OF A NAME]...: single operators beside ONNX Runtime.

Each case is a model of one node on large and on small tensors. Both systems
take it in turn, in one run, on one thread, without optimisations; the best of
several rounds counts. A ratio above 1 means that ONNX Runtime is faster.

The C library is told to keep memory that was freed, as ONNX Runtime's arena
does: this measures kernels, not page faults.
"""

import os
import subprocess
import sys
import time

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

BUILD, PARTS = sys.argv[1], sys.argv[2:]
FOLDER = os.path.join(BUILD, "bench", "kernels")
LARGE, SMALL = 1 << 20, 1 << 10
random = numpy.random.default_rng(7)


def numbers(*shape, low=-3.0, high=3.0):
    return random.uniform(low, high, shape).astype("float32")


def case(name, op, *inputs, outputs=1, opset=18, **attributes):
    """One node; inputs are arrays. A constant is wrapped in a list."""
    names = [f"x{i}" for i in range(len(inputs))]
    arrays = [x[0] if isinstance(x, list) else x for x in inputs]
    fixed = [isinstance(x, list) for x in inputs]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], **attributes)
    return {
        "name": name, "node": node, "opset": opset,
        "feeds": {n: a for n, a, f in zip(names, arrays, fixed) if not f},
        "constants": {n: a for n, a, f in zip(names, arrays, fixed) if f},
    }


def elementwise(n, size):
    x, y = numbers(n), numbers(n)
    positive = numbers(n, low=0.1, high=4)
    for op in ("Relu", "Sigmoid", "Tanh", "Exp", "Erf", "Neg", "Abs", "Floor",
               "Softplus", "HardSigmoid", "LeakyRelu", "Elu", "Reciprocal"):
        yield case(op + size, op, x)
    yield case("Gelu" + size, "Gelu", x, opset=20)
    for op in ("Sqrt", "Log"):
        yield case(op + size, op, positive)
    for op in ("Add", "Sub", "Mul", "Div", "Max", "Greater", "Equal"):
        yield case(op + size, op, x, y)
    for power in (2.0, 3.0, 0.5, 1.7):
        exponent = [numpy.array(power, "float32")]
        yield case(f"Pow {power}" + size, "Pow", positive, exponent)
    yield case("Clip" + size, "Clip", x, [numpy.float32(-1)], [numpy.float32(1)])
    yield case("Where" + size, "Where", x > 0, x, y)
    for to in (TensorProto.INT32, TensorProto.INT64, TensorProto.FLOAT16,
               TensorProto.DOUBLE, TensorProto.BOOL):
        yield case(f"Cast f32 {TensorProto.DataType.Name(to)}" + size, "Cast", x, to=to)
    for kind in ("int64", "int32", "uint8", "float16", "bool"):
        whole = (random.integers(0, 2, n) if kind == "bool" else random.integers(0, 99, n))
        yield case(f"Cast {kind} f32" + size, "Cast", whole.astype(kind), to=TensorProto.FLOAT)


def broadcast(n, size):
    rows = 1 << (n.bit_length() // 2)
    x = numbers(rows, n // rows)
    yield case("Add row" + size, "Add", x, numbers(n // rows))
    yield case("Add column" + size, "Add", x, numbers(rows, 1))
    yield case("Mul scalar" + size, "Mul", x, numbers(1))
    yield case("Add row+column" + size, "Add", numbers(1, n // rows), numbers(rows, 1))
    yield case("Add channel" + size, "Add", numbers(4, n // 256, 64), numbers(1, n // 256, 1))
    yield case("Mul general" + size, "Mul", numbers(8, 1, n // 64, 2), numbers(8, 4, 1, 2))
    yield case("Where scalar" + size, "Where", x > 0, x, numbers(1))


def reduce(n, size):
    x = numbers(4, n // 256, 64)
    for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2"):
        for name, axis in (("last", 2), ("first", 0), ("middle", 1)):
            yield reduce_case(f"{op} {name}" + size, op, x, [axis])
        yield reduce_case(f"{op} all" + size, op, x, [0, 1, 2])
        yield reduce_case(f"{op} spatial" + size, op, numbers(1, n // 64, 8, 8), [2, 3])
    for name, axis in (("last", 2), ("first", 0), ("middle", 1)):
        yield case(f"ArgMax {name}" + size, "ArgMax", x, axis=axis)
    yield case("Softmax last" + size, "Softmax", x, axis=-1)
    yield case("Softmax 1000" + size, "Softmax", numbers(max(1, n // 1000), 1000), axis=-1)
    yield case("Softmax middle" + size, "Softmax", x, axis=1)
    yield case("LogSoftmax last" + size, "LogSoftmax", x, axis=-1)
    yield case("CumSum last" + size, "CumSum", x, [numpy.array(2)])


def reduce_case(name, op, x, axes):
    return case(name, op, x, [numpy.array(axes, "int64")], keepdims=0)


def movement(n, size):
    rows = 1 << (n.bit_length() // 2)
    square, image = numbers(rows, n // rows), numbers(1, 16, n // 256, 16)
    yield case("Transpose 2-D" + size, "Transpose", square, perm=[1, 0])
    yield case("Transpose NHWC" + size, "Transpose", image, perm=[0, 2, 3, 1])
    yield case("Transpose NCHW" + size, "Transpose", image, perm=[0, 3, 1, 2])
    yield case("Transpose 0213" + size, "Transpose", numbers(4, n // 256, 4, 16), perm=[0, 2, 1, 3])
    yield case("Transpose 0231" + size, "Transpose", numbers(4, n // 256, 4, 16), perm=[0, 2, 3, 1])
    half = random.integers(0, rows, rows // 2)
    yield case("Gather rows" + size, "Gather", square, half, axis=0)
    yield case("Gather columns" + size, "Gather", square, random.integers(0, n // rows, n // rows // 2), axis=1)
    yield case("Gather scalar runs" + size, "Gather", numbers(n), random.integers(0, n, n), axis=0)
    yield case("GatherElements" + size, "GatherElements", square, random.integers(0, rows, square.shape), axis=0)
    yield case("Concat first" + size, "Concat", square, square, axis=0)
    yield case("Concat last" + size, "Concat", square, square, axis=1)
    bounds = [[numpy.array(b)] for b in ([1, 2], [rows - 1, n // rows - 2], [0, 1])]
    yield case("Slice" + size, "Slice", square, *bounds)
    steps = [[numpy.array(b)] for b in ([0, 0], [rows, n // rows], [0, 1], [2, 2])]
    yield case("Slice steps" + size, "Slice", square, *steps)
    yield case("Split first" + size, "Split", square, outputs=2, axis=0, num_outputs=2)
    yield case("Split last" + size, "Split", square, outputs=2, axis=1, num_outputs=2)
    for mode in ("constant", "edge", "reflect"):
        yield case(f"Pad {mode}" + size, "Pad", image, [numpy.array([0, 0, 1, 1, 0, 0, 1, 1])], mode=mode)
    yield case("Tile" + size, "Tile", numbers(rows, n // rows // 2), [numpy.array([1, 2])])
    yield case("Expand column" + size, "Expand", numbers(rows, 1), [numpy.array([rows, n // rows])])
    yield case("Expand row" + size, "Expand", numbers(n // rows), [numpy.array([rows, n // rows])])


def channels(x, *more):
    """An operand with scales, biases, means, variances: one for each channel."""
    n = x.shape[1]
    return (x, *([numbers(n, low=0.5, high=2)] for _ in range(more[0] if more else 2)))


def layers(n, size):
    """Normalisations and pools of ResNet, MobileNet and BERT."""
    across = 112 if n == LARGE else 7
    x = numbers(1, 64, across, across)
    for name, window, stride, pad in (("3x3 s2", 3, 2, 1), ("2x2 s2", 2, 2, 0),
                                      ("3x3 s1", 3, 1, 1), ("5x5 s1", 5, 1, 2)):
        shape = dict(kernel_shape=[window] * 2, strides=[stride] * 2, pads=[pad] * 4)
        yield case(f"MaxPool {name}" + size, "MaxPool", x, **shape)
        yield case(f"AveragePool {name}" + size, "AveragePool", x, **shape)
    yield case("MaxPool indices" + size, "MaxPool", x, outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
        yield case(op + size, op, x)
        yield case(op + " 7x7" + size, op, numbers(1, 2048, 7, 7))
    yield case("LpPool" + size, "LpPool", x, kernel_shape=[3, 3], strides=[2, 2])
    yield case("BatchNormalization" + size, "BatchNormalization", *channels(x, 4))
    yield case("InstanceNormalization" + size, "InstanceNormalization", *channels(x))
    yield case("GroupNormalization" + size, "GroupNormalization", *channels(x), opset=21, num_groups=8)
    rows = numbers(128, 768) if n == LARGE else numbers(4, 64)
    ends = ([numbers(rows.shape[1])], [numbers(rows.shape[1])])
    yield case("LayerNormalization" + size, "LayerNormalization", rows, *ends)
    yield case("RMSNormalization" + size, "RMSNormalization", rows, ends[0], opset=23)
    yield case("LpNormalization" + size, "LpNormalization", rows, axis=-1, p=2)
    yield case("MeanVariance" + size, "MeanVarianceNormalization", x)
    yield case("LRN" + size, "LRN", x, size=5)


def quantised(n, size):
    rows = 1 << (n.bit_length() // 2)
    x = numbers(rows, n // rows)
    whole = random.integers(-128, 128, x.shape).astype("int8")
    one, zero = [numpy.float32(0.03)], [numpy.int8(3)]
    by_row, by_column = ([numbers(k, low=0.01, high=1)] for k in x.shape)
    blocks = [numbers(rows, n // rows // 16, low=0.01, high=1)]
    yield case("QuantizeLinear" + size, "QuantizeLinear", x, one, zero)
    yield case("QuantizeLinear rows" + size, "QuantizeLinear", x, by_row, axis=0)
    yield case("QuantizeLinear f16" + size, "QuantizeLinear", x.astype("float16"), [numpy.float16(0.03)], zero, opset=19)
    yield case("DequantizeLinear" + size, "DequantizeLinear", whole, one, zero)
    yield case("DequantizeLinear rows" + size, "DequantizeLinear", whole, by_row, axis=0)
    yield case("DequantizeLinear columns" + size, "DequantizeLinear", whole, by_column, axis=1)
    yield case("DequantizeLinear blocks" + size, "DequantizeLinear", whole, blocks, opset=21, axis=1, block_size=16)
    yield case("DynamicQuantizeLinear" + size, "DynamicQuantizeLinear", x, outputs=3)


def images(n, size):
    across = 64 if n == LARGE else 8
    x, none = numbers(1, 32, across, across), [numpy.zeros(0, "float32")]
    for name, factor in (("x2", 2.0), ("x1.5", 1.5), ("x0.5", 0.5)):
        by = [numpy.array([1, 1, factor, factor], "float32")]
        for mode in ("nearest", "linear", "cubic"):
            yield case(f"Resize {mode} {name}" + size, "Resize", x, none, by, mode=mode)
    floor = dict(coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    double = [numpy.array([1, 1, 2, 2], "float32")]
    yield case("Resize asymmetric" + size, "Resize", x, none, double, mode="nearest", **floor)
    half = [numpy.array([1, 1, 0.5, 0.5], "float32")]
    yield case("Resize antialias" + size, "Resize", x, none, half, mode="linear", antialias=1)
    bytes_of = random.integers(0, 256, (1, 3, 4 * across, 4 * across)).astype("uint8")
    sizes = [numpy.array([1, 3, 3 * across, 3 * across])]
    for mode in ("nearest", "linear"):
        yield case(f"Resize {mode} uint8" + size, "Resize", bytes_of, none, none, sizes, mode=mode)
    grid = numbers(1, across, across, 2, low=-1, high=1)
    for mode in ("nearest", "linear", "cubic"):
        yield case(f"GridSample {mode}" + size, "GridSample", x, grid, opset=20, mode=mode)
    boxes = numpy.sort(numbers(16, 2, 2, low=0, high=across - 1), axis=1).reshape(16, 4)
    yield case("RoiAlign" + size, "RoiAlign", x, boxes, numpy.zeros(16, "int64"),
               output_height=7, output_width=7, sampling_ratio=2)


def others(n, size):
    x, whole = numbers(n), random.integers(-99, 99, n)
    truth = x > 0
    for op in ("Sin", "Cos", "Atan", "Sign", "Round", "Ceil", "Selu", "Softsign", "HardSwish",
               "ThresholdedRelu"):
        yield case(op + size, op, x)
    for op in ("Add", "Mul", "Max", "Equal", "Less"):
        yield case(f"{op} int64" + size, op, whole, whole[::-1].copy())
    for op in ("Div", "Mod"):
        yield case(f"{op} int64" + size, op, whole, abs(whole) + 1)
        yield case(f"{op} int64 by 7" + size, op, whole, [numpy.array(7)])
    for op in ("And", "Or"):
        yield case(op + size, op, truth, truth[::-1].copy())
    yield case("Not" + size, "Not", truth)
    yield case("IsNaN" + size, "IsNaN", x)
    yield case("Sum of 3" + size, "Sum", x, x, x)
    yield case("Max of 3" + size, "Max", x, x + 1, x - 1)
    yield case("PRelu channel" + size, "PRelu", numbers(1, 16, n // 256, 16), numbers(16, 1, 1))
    rows = 1 << (n.bit_length() // 2)
    square = numbers(rows, n // rows)
    yield reduce_case("ReduceProd last" + size, "ReduceProd", square, [1])
    yield reduce_case("ReduceMin last" + size, "ReduceMin", square, [1])
    yield reduce_case("ReduceL1 last" + size, "ReduceL1", square, [1])
    yield reduce_case("ReduceSumSquare last" + size, "ReduceSumSquare", square, [1])
    yield reduce_case("ReduceLogSumExp last" + size, "ReduceLogSumExp", square, [1])
    yield reduce_case("ReduceSum int64 last" + size, "ReduceSum", whole.reshape(rows, -1), [1])
    yield reduce_case("ReduceMax int64 last" + size, "ReduceMax", whole.reshape(rows, -1), [1])
    yield case("ArgMin last" + size, "ArgMin", square, axis=1)
    yield case("Transpose image" + size, "Transpose", numbers(1, n // 12, 4, 3), perm=[0, 3, 1, 2])
    yield case("Transpose image back" + size, "Transpose", numbers(1, 3, n // 12, 4), perm=[0, 2, 3, 1])
    yield case("Transpose int64" + size, "Transpose", whole.reshape(rows, -1), perm=[1, 0])
    yield case("Transpose uint8" + size, "Transpose", whole.reshape(rows, -1).astype("uint8"), perm=[1, 0])
    yield case("DepthToSpace" + size, "DepthToSpace", numbers(1, 16, n // 256, 16), blocksize=2)
    places = numpy.stack([random.integers(0, rows, rows), random.integers(0, n // rows, rows)], 1)
    yield case("GatherND" + size, "GatherND", square, places)
    yield case("GatherND rows" + size, "GatherND", square, places[:, :1].copy())
    yield case("ScatterND rows" + size, "ScatterND", square, numpy.arange(rows)[:, None], square)
    yield case("ScatterElements" + size, "ScatterElements", square, random.integers(0, rows, square.shape), square,
               axis=0)
    yield case("OneHot" + size, "OneHot", random.integers(0, 100, n // 100), [numpy.array(100)],
               [numpy.array([0, 1], "float32")])
    yield case("TopK" + size, "TopK", square, [numpy.array([8])], outputs=2)
    yield case("NonZero" + size, "NonZero", truth)
    yield case("Compress" + size, "Compress", x, truth, axis=0)
    yield case("Trilu" + size, "Trilu", square)
    yield case("Range" + size, "Range", [numpy.array(0)], [numpy.array(n)], [numpy.array(1)])


def save(model, name):
    path = os.path.join(FOLDER, name)
    onnx.save(model, path)
    return path


def value(name, array=None):
    if array is None:
        return helper.make_empty_tensor_value_info(name)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def make(nodes, name, inputs, outputs, constants, opset):
    tensors = [numpy_helper.from_array(a, n) for n, a in constants.items()]
    graph = helper.make_graph(nodes, name, inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def write(one, index):
    """The model, and a file for each operand."""
    feeds, node = one["feeds"], one["node"]
    model = make([node], "case", [value(n, a) for n, a in feeds.items()],
                 [value(n) for n in node.output], one["constants"], one["opset"])
    files = [os.path.join(FOLDER, f"{index}_{n}.npy") for n in feeds]
    for file, array in zip(files, feeds.values()):
        numpy.save(file, array)
    return save(model, f"{index}.onnx"), files


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def peer_time(ready, feeds, count):
    best = 1e9
    for _ in range(count):
        start = time.perf_counter()
        ready.run(None, feeds)
        best = min(best, time.perf_counter() - start)
    return best


def our_time(ours, path, files, count):
    ours.stdin.write(" ".join([path, str(count), *files]) + "\n")
    ours.stdin.flush()
    answer = ours.stdout.readline().strip()
    try:
        return float(answer)
    except ValueError:
        print("#", answer)
        return float("nan")


def compare(ours, one, index):
    path, files = write(one, index)
    large = sum(a.size for a in one["feeds"].values()) > 100000
    mine = peer = 1e9
    try:
        ready = session(path)
    except Exception as error:  # the peer has no such kernel
        print(f"{one['name']:30} skipped: {str(error)[:60]}")
        return None
    for _ in range(3):
        mine = min(mine, our_time(ours, path, files, 6 if large else 300))
        peer = min(peer, peer_time(ready, one["feeds"], 6 if large else 300))
    print(f"{one['name']:30} {mine * 1e6:10.1f} us {peer * 1e6:10.1f} us {mine / peer:8.2f}", flush=True)
    for file in [path, *files]:
        os.remove(file)
    return mine / peer


def main():
    os.makedirs(FOLDER, exist_ok=True)
    keep = dict(os.environ, MALLOC_TRIM_THRESHOLD_=str(1 << 30), MALLOC_MMAP_THRESHOLD_=str(1 << 30))
    ours = subprocess.Popen(["lua5.4", "spec/bench/kernels.lua", BUILD], env=keep,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    print(f"{'':30} {'perilune':>13} {'onnxruntime':>13} {'ratio':>8}")
    ratios = []
    for n, size in ((LARGE, " 1M"), (SMALL, " 1k")):
        for family in (elementwise, broadcast, reduce, movement, others, layers, quantised, images):
            for i, one in enumerate(family(n, size)):
                if not PARTS or any(p in one["name"] for p in PARTS):
                    ratios.append(compare(ours, one, i))
    known = [r for r in ratios if r == r and r is not None]
    slow = sum(r > 1.5 for r in known)
    print(f"{len(known)} cases, geometric mean {numpy.exp(numpy.log(known).mean()):.2f}, {slow} above 1.5")
    ours.stdin.close()
    ours.wait()


main()
