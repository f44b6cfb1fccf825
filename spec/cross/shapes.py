"""Counts the dims that inference finds, beside what others find in the same models.

    shapes.py [NAME]...

Each export loses its value_info. Then onnx.shape_inference (with data propagation), onnxruntime's symbolic shape
inference and `perilune opt -p InferType --value-info` each say what they know of the values of the main graph. Printed
are, model by model, the number of values, and of each tool how many dims are numbers and how many are numbers or
symbols. A value of unknown rank counts none. The exit status is 1 when perilune knows fewer of either than another tool,
77 when the data or the packages are not there."""
import contextlib
import os
import re
import subprocess
import sys

try:
    import onnx
    import onnx.shape_inference
    from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference
except ImportError as missing:
    print(missing)
    sys.exit(77)

from optimise import BUILD, PERILUNE, unpacked_torch

WORK = os.path.join(BUILD, "cross", "shapes")
TOOLS = ("onnx", "onnxruntime", "perilune")


def without_value_info(path):
    model = onnx.load(path)
    del model.graph.value_info[:]
    return model


def infer_onnx(model, _):
    return onnx.shape_inference.infer_shapes(model, data_prop=True)


def infer_onnxruntime(model, _):
    # Where it fails, it leaves a file in the current folder.
    with contextlib.chdir(WORK):
        return SymbolicShapeInference.infer_shapes(model, auto_merge=True)


def infer_perilune(_, path):
    out = path[:-5] + ".typed.onnx"
    subprocess.run([PERILUNE, "opt", path, "-o", out, "-p", "InferType", "--value-info"], check=True, capture_output=True)
    return onnx.load(out, load_external_data=False)


FUNCTIONS = {"floor", "ceil", "ceiling", "Max", "Min", "max", "min", "floordiv", "floormod", "Mod", "Abs", "abs", "truncdiv", "truncmod"}
INFER = {"onnx": infer_onnx, "onnxruntime": infer_onnxruntime, "perilune": infer_perilune}


def types_of(model):
    values = list(model.graph.value_info) + list(model.graph.output)
    return {value.name: value.type for value in values}


def known(dim, symbols):
    """Whether the dim is a number, or an expression of the dims that the model names; onnxruntime makes up other names."""
    return dim.HasField("dim_value") or dim.dim_param and all(
        word in symbols or word in FUNCTIONS for word in re.findall(r"[A-Za-z_][\w.]*", dim.dim_param))


def symbols_of(model):
    values = list(model.graph.input) + list(model.graph.output)
    return {dim.dim_param for value in values for dim in value.type.tensor_type.shape.dim if dim.dim_param}


def count(model, names, symbols):
    """(dims that are numbers, dims that are numbers or symbols) of the values `names`."""
    types, numbers, all_known = types_of(model), 0, 0
    for name in names:
        kind = types.get(name)
        if kind is None or not kind.HasField("tensor_type"):
            continue
        for dim in kind.tensor_type.shape.dim:
            numbers += dim.HasField("dim_value")
            all_known += bool(known(dim, symbols))
    return numbers, all_known


def measure(path, name):
    model = without_value_info(path)
    stripped = os.path.join(WORK, name + ".onnx")
    onnx.save(model, stripped)
    names = [output for node in model.graph.node for output in node.output if output]
    symbols, counts = symbols_of(model), {}
    for tool in TOOLS:
        try:
            counts[tool] = count(INFER[tool](model, stripped), names, symbols)
        except Exception as error:  # what a tool cannot read it knows nothing of
            print("%s: %s: %s" % (name, tool, str(error).strip().splitlines()[-1][:120] if str(error) else type(error)))
            counts[tool] = (0, 0)
    return len(names), counts


def main(chosen):
    folder = unpacked_torch()
    if not os.path.isdir(folder):
        print("no exports in", folder)
        return 77
    os.makedirs(WORK, exist_ok=True)
    fewer = 0
    print("%-40s %6s %15s %15s %15s" % ("model", "values", *TOOLS))
    for name in sorted(chosen or os.listdir(folder)):
        path = os.path.join(folder, name, "model.onnx")
        if not os.path.exists(path):
            continue
        n_values, counts = measure(path, name)
        ours = counts["perilune"]
        less = any(counts[tool][i] > ours[i] for tool in TOOLS[:2] for i in (0, 1))
        fewer += less
        print("%-40s %6d %15s %15s %15s%s" % (name, n_values, *("%d %d" % counts[tool] for tool in TOOLS), "  FEWER" if less else ""),
              flush=True)
    print("%d with fewer dims" % fewer)
    return fewer > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
