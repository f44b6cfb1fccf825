"""Compares FlexAttention with onnx's reference on random shapes, dtypes, scales and functions.

    flex_attention.py [CASES] [SEED]

Heads are shared by groups of random size; functions are made of one to three operators. Some precisions are other than
the operands'."""
import os
import random
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

PERILUNE = os.path.join(os.environ.get("PERILUNE_BUILD", "build"), "bin", "perilune")
DTYPES = {TensorProto.FLOAT: np.dtype("float32"), TensorProto.DOUBLE: np.dtype("float64"),
          TensorProto.FLOAT16: np.dtype("float16"), TensorProto.BFLOAT16: np.dtype(ml_dtypes.bfloat16)}
# Relative, and as a part of the largest element, by the coarser of the two dtypes.
TOLERANCE = {TensorProto.FLOAT: 1e-5, TensorProto.DOUBLE: 1e-12, TensorProto.FLOAT16: 1e-2, TensorProto.BFLOAT16: 6e-2}
STEPS = ["Neg", "Tanh", "Relu", "Sigmoid", "Abs", "Add", "Mul"]


def modifier(draw, name, dtype, shape):
    nodes, last = [], "x"
    for i in range(draw.randint(1, 3)):
        step = draw.choice(STEPS)
        inputs = [last, "x"] if step in ("Add", "Mul") else [last]
        nodes.append(helper.make_node(step, inputs, [f"y{i}"]))
        last = f"y{i}"
    value = helper.make_tensor_value_info
    return helper.make_graph(nodes, name, [value("x", dtype, shape)], [value(last, dtype, shape)])


def make_case(draw):
    """A model, its operands and the coarsest of its dtypes."""
    dtype = draw.choice(list(DTYPES))
    given = draw.choice([None, None, *DTYPES])
    precision = given or (TensorProto.DOUBLE if dtype == TensorProto.DOUBLE else TensorProto.FLOAT)
    batch, groups, share = draw.randint(1, 3), draw.randint(1, 3), draw.randint(1, 4)
    steps, keys, size, width = (draw.randint(1, 9) for _ in range(4))
    scores = [batch, groups * share, steps, keys]
    attributes = {}
    if given:
        attributes["softmax_precision"] = given
    if draw.random() < 0.5:
        attributes["scale"] = draw.uniform(0.1, 2)
    for name in "prob_mod", "score_mod":
        if draw.random() < 0.5:
            attributes[name] = modifier(draw, name, precision, scores)
    shapes = {"Q": [batch, groups * share, steps, size], "K": [batch, groups, keys, size],
              "V": [batch, groups, keys, width], "Y": [batch, groups * share, steps, width]}
    value = {name: helper.make_tensor_value_info(name, dtype, shape) for name, shape in shapes.items()}
    node = helper.make_node("FlexAttention", ["Q", "K", "V"], ["Y"], domain="ai.onnx.preview", **attributes)
    graph = helper.make_graph([node], "flex", [value[name] for name in "QKV"], [value["Y"]])
    opsets = [helper.make_opsetid("", 26), helper.make_opsetid("ai.onnx.preview", 1)]
    normal = np.random.default_rng(draw.getrandbits(32))
    operands = {name: normal.standard_normal(shapes[name]).astype(DTYPES[dtype]) for name in "QKV"}
    return (helper.make_model(graph, opset_imports=opsets, ir_version=11), operands,
            max((dtype, precision), key=TOLERANCE.get))


def save(folder, model, operands, result):
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data)
    with open(os.path.join(folder, "model.onnx"), "wb") as file:
        file.write(model.SerializeToString())
    values = [(f"input_{i}", array) for i, array in enumerate(operands.values())] + [("output_0", result)]
    for name, array in values:
        with open(os.path.join(data, f"{name}.pb"), "wb") as file:
            file.write(numpy_helper.from_array(array).SerializeToString())


def passes(folders, tolerance):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as names:
        names.write("\n".join(folders) + "\n")
        names.flush()
        for options in [], ["--opt"]:
            ended = subprocess.run([PERILUNE, "test", "--from", names.name, "--rtol", str(tolerance), "--atol",
                                    str(tolerance), "--scaled", *options], capture_output=True, text=True)
            last = (ended.stdout.splitlines() or [""])[-1]
            if last != f"{len(folders)} passed, 0 failed, 0 skipped":
                print(ended.stdout, ended.stderr)
                return False
    return True


def main(cases=200, seed=1):
    draw = random.Random(int(seed))
    with tempfile.TemporaryDirectory() as folder:
        by_dtype = {}
        for i in range(int(cases)):
            model, operands, dtype = make_case(draw)
            with np.errstate(all="ignore"):
                result = ReferenceEvaluator(model).run(None, operands)[0]
            path = os.path.join(folder, f"case_{i}")
            save(path, model, operands, result)
            by_dtype.setdefault(dtype, []).append(path)
        right = [passes(folders, TOLERANCE[dtype]) for dtype, folders in by_dtype.items()]
    print(f"{cases} cases, seed {seed}: {'all agree' if all(right) else 'some differ'}")
    sys.exit(not all(right))


main(*sys.argv[1:])
