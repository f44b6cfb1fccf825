"""Runs operators on what has no defined result, or hardly one: NaN, infinities, numbers outside of a range, division by
zero; and compares with onnxruntime, its optimisations off.

    undefined.py [SEED [ROUNDS]]

What onnxruntime computes perilune computes as well, element by element, when it runs the model. Folding either refuses
or gives the same. What is left out, and why, stands where it is drawn. Exit status 77 when packages are not there."""
import ctypes
import os
import random
import shutil
import subprocess
import sys

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto as T
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(missing)
    sys.exit(77)

BUILD = os.environ.get("PERILUNE_BUILD", "build")
PERILUNE = os.path.join(BUILD, "bin", "perilune")
WORK = os.path.join(BUILD, "cross", "undefined")
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "undefined.lua")

NAN, INF = float("nan"), float("inf")
FLOATS = [NAN, -NAN, INF, -INF, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1.0, -1.0, 3e38, -3e38, 1e-40, -1e-40, 127.5,
          -128.5, 128.0, 255.5, 256.0, 300.0, -300.0, 32767.5, 40000.0, -40000.0, 65504.0, 70000.0, 2147483520.0,
          2147483648.0, -2147483648.0, 4294967296.0, 9.2233720368547758e18, -9.2233720368547758e18, 1.8446744073709552e19,
          448.0, 464.0, 57344.0, 61440.0, 6.0, 7.0, 1e10, -1e10]
INTS = {np.int8: 8, np.int16: 16, np.int32: 32, np.int64: 64, np.uint8: 8, np.uint16: 16, np.uint32: 32, np.uint64: 64}


def edges(dtype):
    info = np.iinfo(dtype)
    return [v for v in (0, 1, 2, 3, 7, -1, -2, -7, info.min, info.min + 1, info.max, info.max - 1, 31, 32, 63, 64)
            if info.min <= v <= info.max]


def draw(rng, dtype, shape):
    n = int(np.prod(shape))
    with np.errstate(all="ignore"):
        if np.issubdtype(dtype, np.floating):
            return np.array([rng.choice(FLOATS) for _ in range(n)]).astype(dtype).reshape(shape)
        if dtype == np.bool_:
            return np.array([rng.random() < 0.5 for _ in range(n)]).reshape(shape)
        return np.array([rng.choice(edges(dtype)) for _ in range(n)], dtype).reshape(shape)


def without_nan(x):
    """Extremes with a NaN: onnxruntime passes over it or not as the axis and the machine's vectors have it; perilune gives
    NaN, and its place, as NumPy does."""
    return np.where(np.isnan(x), x.dtype.type(1), x) if np.issubdtype(x.dtype, np.floating) else x


def moderate(x):
    """Sums and products are rounded in another order."""
    return np.where(np.abs(x) > 1e4, x.dtype.type(3), x) if np.issubdtype(x.dtype, np.floating) else x


CASES = []


def case(make):
    CASES.append(make)
    return make


def model(name, inputs, attributes, outputs=1, opset=21, types=None):
    """One node on initializers; inputs are arrays, TensorProtos or None."""
    names, initializers = [], []
    for i, x in enumerate(inputs):
        names.append("" if x is None else f"x{i}")
        if x is None:
            continue
        t = x if isinstance(x, onnx.TensorProto) else numpy_helper.from_array(x)
        t.name = f"x{i}"
        initializers.append(t)
    outs = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(name, names, outs, **attributes)
    infos = [onnx.ValueInfoProto(name=o) for o in outs]
    for i, t in enumerate(types or []):
        infos[i] = helper.make_tensor_value_info(f"y{i}", t, None)
    graph = helper.make_graph([node], name, [], infos, initializers)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset)])


FLOAT = (np.float32, np.float32, np.float64, np.float16)
WHOLE = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
CAST = [T.FLOAT, T.UINT8, T.INT8, T.UINT16, T.INT16, T.INT32, T.INT64, T.BOOL, T.FLOAT16, T.DOUBLE, T.UINT32, T.UINT64,
        T.BFLOAT16, T.FLOAT8E4M3FN, T.FLOAT8E4M3FNUZ, T.FLOAT8E5M2, T.FLOAT8E5M2FNUZ, T.UINT4, T.INT4]


@case
def cast(rng):
    attributes = {"to": rng.choice(CAST)}
    if rng.random() < 0.3 and attributes["to"] != T.FLOAT8E5M2:  # onnxruntime rounds into its NaN, not infinity
        attributes["saturate"] = 0
    x = draw(rng, rng.choice(FLOAT + WHOLE + (np.bool_,)), (rng.randint(1, 12),))
    if attributes["to"] in (T.UINT4, T.INT4, T.UINT32, T.UINT64):  # outside of these any compiler's choice
        x = np.where((x >= 0) & (x < 8), x, x.dtype.type(1)) // x.dtype.type(1)
    return model("Cast", [x], attributes, types=[attributes["to"]])


@case
def quantize(rng):
    dtype = rng.choice([T.UINT8, T.INT8, T.UINT16, T.INT16, T.FLOAT8E4M3FN, T.FLOAT8E5M2, T.FLOAT8E4M3FNUZ, T.UINT4, T.INT4])
    x = draw(rng, rng.choice((np.float32, np.float32, np.float16)), (rng.randint(1, 40),))
    zero = helper.make_tensor("z", dtype, [], [rng.choice([0, 1, 7]) if dtype in (T.UINT8, T.INT8, T.UINT16, T.INT16)
                                               else 0])
    scale = np.array(rng.choice([1.0, 0.5, 1e-30, 3e38, NAN, INF, 0.0, 2.0]), x.dtype)
    return model("QuantizeLinear", [x, scale, zero], {}, types=[dtype])


@case
def dequantize(rng):
    dtype = rng.choice((np.int8, np.uint8, np.int16, np.int32))
    x = draw(rng, dtype, (rng.randint(1, 8),))
    scale = np.array(rng.choice([1.0, NAN, INF, 0.0, 3e38]), np.float32)
    return model("DequantizeLinear", [x, scale], {}, types=[T.FLOAT])


@case
def dynamic_quantize(rng):
    return model("DynamicQuantizeLinear", [without_nan(draw(rng, np.float32, (rng.randint(1, 20),)))], {}, 3,
                 types=[T.UINT8, T.FLOAT, T.UINT8])


@case
def topk(rng):
    n = rng.randint(1, 40)
    x = draw(rng, rng.choice((np.float32, np.float64, np.int64, np.int32)), (n,))
    return model("TopK", [x, np.array([rng.randint(0, n)], np.int64)], {"largest": rng.randint(0, 1), "axis": 0}, 2)


@case
def arg(rng):
    x = without_nan(draw(rng, rng.choice((np.float32, np.float64, np.int8, np.int32)),
                         (rng.randint(1, 4), rng.randint(1, 40))))
    return model(rng.choice(["ArgMax", "ArgMin"]), [x],
                 {"axis": rng.randint(0, 1), "keepdims": 0, "select_last_index": rng.randint(0, 1)})


@case
def reduce(rng):
    x = moderate(without_nan(draw(rng, np.float32, (rng.randint(1, 4), rng.randint(1, 20)))))
    name = rng.choice(["ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceLogSum",
                       "ReduceLogSumExp", "ReduceSumSquare", "ReduceL2"])
    return model(name, [x, np.array([rng.randint(0, 1)], np.int64)], {"keepdims": 0})


@case
def reduce_none(rng):
    x = draw(rng, np.float32, (rng.randint(1, 3), rng.randint(1, 6)))
    name = rng.choice(["ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceLogSum",
                       "ReduceLogSumExp", "ReduceSumSquare", "ReduceL2"])
    return model(name, [x, np.zeros(0, np.int64)], {"noop_with_empty_axes": 1})


@case
def unary(rng):
    name = rng.choice(["Round", "Floor", "Ceil", "Sign", "Abs", "Neg", "Sqrt", "Reciprocal", "Exp", "Log", "Sigmoid", "Tanh",
                       "Relu", "Softplus", "Softsign", "Erf", "Elu", "Selu", "LeakyRelu", "HardSigmoid", "ThresholdedRelu",
                       "IsNaN", "IsInf", "Sin", "Cos", "HardSwish", "Celu", "Mish", "Gelu", "Asin", "Acosh", "Atanh",
                       "Softmax", "LogSoftmax", "Hardmax", "Not", "Shrink"])
    dtype = np.bool_ if name == "Not" else np.float32
    return model(name, [draw(rng, dtype, (rng.randint(1, 20),))], {"axis": 0} if "max" in name else {})


@case
def integer_unary(rng):
    return model(rng.choice(["Abs", "Neg", "Sign", "Relu"]), [draw(rng, rng.choice((np.int8, np.int32, np.int64)), (8,))], {})


@case
def clip(rng):
    dtype = rng.choice((np.float32, np.float64, np.int8, np.int32, np.int64, np.uint8))
    bounds = [rng.choice([None, draw(rng, dtype, ())]) for _ in range(2)]
    return model("Clip", [draw(rng, dtype, (rng.randint(1, 20),)), *bounds], {}, opset=13)


@case
def clip_attributes(rng):
    attributes = {k: rng.choice([NAN, INF, -INF, 0.0, 1.0, -1.0]) for k in ("min", "max") if rng.random() < 0.6}
    return model("Clip", [draw(rng, np.float32, (rng.randint(1, 20),))], attributes, opset=6)


@case
def binary(rng):
    dtype = rng.choice((np.float32, np.float64))
    shape = (rng.randint(1, 20),)
    name = rng.choice(["Add", "Sub", "Mul", "Div", "Pow", "PRelu", "Equal", "Less", "LessOrEqual", "Greater", "Min", "Max",
                       "Mod"])
    return model(name, [draw(rng, dtype, shape), draw(rng, dtype, shape)], {"fmod": 1} if name == "Mod" else {}, opset=13)


@case
def integer_binary(rng):
    dtype = rng.choice((np.int32, np.int64, np.int8, np.uint8))
    shape = (rng.randint(1, 8),)
    name = rng.choice(["Add", "Sub", "Mul", "Div", "Min", "Max", "Pow", "Mod"])
    a, b = draw(rng, dtype, shape), draw(rng, dtype, shape)
    if name in ("Div", "Mod"):  # what traps kills the process
        b[b == 0] = 1
        b[(b == -1)] = 1
    if name == "Pow":  # integers wrap; onnxruntime goes through doubles
        a, b = a % 5 - (2 if dtype is np.int32 else 0), b % 7 - (3 if dtype in (np.int32, np.int64) else 0)
        a, b = a.astype(dtype), b.astype(dtype)
    return model(name, [a, b], {}, opset=15)


@case
def shift(rng):
    dtype = rng.choice((np.uint8, np.uint16, np.uint32, np.uint64))
    x = draw(rng, dtype, (8,))
    y = np.array([rng.randint(0, INTS[dtype] + 3) for _ in range(8)], dtype)
    return model("BitShift", [x, y], {"direction": rng.choice(["LEFT", "RIGHT"])})


@case
def range_(rng):
    dtype = rng.choice((np.float32, np.int64, np.int32))
    if dtype is np.float32:
        a, b, d = (np.array(rng.choice([0.0, 1.0, -1.0, 10.0, 0.3, 2.5, -0.7]), dtype) for _ in range(3))
    else:
        a, b, d = (np.array(rng.choice([0, 1, -1, 10, 3, -7]), dtype) for _ in range(3))
    return model("Range", [a, b, d], {})


@case
def resize(rng):
    shape = [1, 1, rng.randint(1, 4), rng.randint(1, 4)]
    x = draw(rng, np.float32, shape)
    mode = rng.choice(["nearest", "linear", "cubic"])
    if mode != "nearest":
        x = np.array([rng.choice([0.5, 1.0, -2.0, 3.0, 7.25]) for _ in range(x.size)], np.float32).reshape(shape)
    attributes = {"mode": mode, "coordinate_transformation_mode": rng.choice(
        ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"])}
    if mode == "nearest":
        attributes["nearest_mode"] = rng.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if rng.random() < 0.5:
        return model("Resize", [x, None, None, np.array([1, 1, rng.randint(1, 7), rng.randint(1, 7)], np.int64)], attributes)
    return model("Resize", [x, None, np.array([1, 1, rng.choice([0.5, 0.6, 1, 2, 1.7]), rng.choice([0.8, 1, 2.5])],
                                              np.float32)], attributes)


@case
def select(rng):
    n = rng.randint(1, 12)
    x = draw(rng, np.float32, (n,))
    return rng.choice([
        lambda: model("NonZero", [x], {}),
        lambda: model("CumSum", [x, np.array(0, np.int64)], {}),
        lambda: model("Where", [draw(rng, np.bool_, (n,)), x, draw(rng, np.float32, (n,))], {}),
        lambda: model("Trilu", [draw(rng, np.float32, (3, 3))], {}),
        lambda: model("OneHot", [draw(rng, np.int64, (4,)) % 9, np.array(3, np.int64), np.array([NAN, INF], np.float32)],
                      {}),
        lambda: model("MaxPool", [draw(rng, np.float32, (1, 1, 6))], {"kernel_shape": [2]}),
        lambda: model("AveragePool", [draw(rng, np.float32, (1, 1, 6))], {"kernel_shape": [2]}),
        lambda: model("GlobalMaxPool", [without_nan(draw(rng, np.float32, (1, 1, 6)))], {}),
        lambda: model("Unique", [without_nan(x)], {}, 4),
    ])()


def run_ort(proto):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run_with_ort_values(None, {})
    except Exception:  # whatever it refuses
        return None


def same(ours, theirs, close):
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return False
    if ours.dtype.kind not in "fc":
        return np.array_equal(ours, theirs)
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= close * np.maximum(np.abs(b), 1)
    return bool(np.all((a == b) | (np.isnan(a) & np.isnan(b)) | near))


def as_array(value):
    """bfloat16, float8 and int4 are compared as bits."""
    if value.element_type() in (T.BFLOAT16, T.FLOAT8E4M3FN, T.FLOAT8E4M3FNUZ, T.FLOAT8E5M2, T.FLOAT8E5M2FNUZ, T.INT4,
                                T.UINT4):
        return None
    return value.numpy()


NANS = {T.FLOAT8E4M3FN: b"\xff\x7f", T.FLOAT8E5M2: b"\xff\x7f\xfe\x7e\xfd\x7d"}


def one_nan(dtype, data):
    """The sign of a NaN says nothing."""
    nans = NANS.get(dtype, b"")
    return bytes(0x7f if b in nans else b for b in data)


def packed(value):
    """The bytes of an OrtValue that numpy does not know."""
    bits = 16 if value.element_type() == T.BFLOAT16 else 4 if value.element_type() in (T.INT4, T.UINT4) else 8
    n = int(np.prod(value.shape()))
    return bytes((ctypes.c_uint8 * ((n * bits + 7) // 8)).from_address(value.data_ptr()))


def compare(proto, theirs, path):
    if not os.path.exists(path + "/0.pb"):
        return "refuses"
    for i, want in enumerate(theirs):
        with open(f"{path}/{i}.pb", "rb") as file:
            tensor = onnx.TensorProto.FromString(file.read())
        array = as_array(want)
        if array is None:
            if tensor.data_type != want.element_type() or \
                    one_nan(tensor.data_type, tensor.raw_data) != one_nan(tensor.data_type, packed(want)):
                return f"output {i}: {tensor.raw_data.hex()}, expected {packed(want).hex()}"
        elif not same(numpy_helper.to_array(tensor), array, 1e-5 if array.dtype != np.float16 else 1e-3):
            return f"output {i}: {numpy_helper.to_array(tensor)}, expected {array}"
    return None


def main():
    seed, rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1, int(sys.argv[2]) if len(sys.argv) > 2 else 40
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    print(f"seed {seed}, {rounds} rounds")
    jobs = []
    for k, make in enumerate(CASES):
        for r in range(rounds):
            proto = make(random.Random(seed * 1000003 + k * 1009 + r))
            theirs = run_ort(proto)
            path = os.path.join(WORK, f"{make.__name__}-{r}")
            os.makedirs(path + "/run")
            os.makedirs(path + "/fold")
            onnx.save(proto, path + "/model.onnx")
            jobs.append((proto, theirs, path))
    with open(WORK + "/list", "w") as file:
        file.writelines(path + "\n" for _, _, path in jobs)
    run = subprocess.run([PERILUNE, SCRIPT, WORK + "/list"], capture_output=True, text=True)
    if run.returncode != 0:
        print(f"{SCRIPT} ends with {run.returncode}\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
        sys.exit(1)
    bad = 0
    for proto, theirs, path in jobs:
        if theirs is None:
            continue
        for how in ("run", "fold"):
            what = compare(proto, theirs, f"{path}/{how}")
            if what is None or (how == "fold" and what == "refuses"):
                continue
            bad += 1
            node = proto.graph.node[0]
            attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            inputs = [numpy_helper.to_array(t) for t in proto.graph.initializer]
            print(f"{path} {how}: {node.op_type} {attributes} {what}\n  of {inputs}")
    computed = sum(theirs is not None for _, theirs, _ in jobs)
    print(f"{len(jobs)} models, {computed} that onnxruntime computes, {bad} differ")
    sys.exit(1 if bad or computed < len(jobs) // 2 else 0)


main()
