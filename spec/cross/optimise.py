"""Optimises models and compares with what others say of the result.

    optimise.py light|torch|defects|zoo [NAME]...

For each model: `perilune opt` succeeds; the same bytes come out of a second run; optimising the result changes nothing;
onnx's checker accepts the result; onnxruntime, its own optimisations off, computes the same from it as from the
original, on the stored inputs. Exit status 77 when the data or the packages are not there."""
import filecmp
import os
import subprocess
import sys
import tarfile

try:
    import numpy
    import onnx
    import onnx.numpy_helper
    import onnxruntime
except ImportError as missing:
    print(missing)
    sys.exit(77)

BUILD = os.environ.get("PERILUNE_BUILD", "build")
SHARED = os.environ.get("PERILUNE_SHARED", "../shared")
PERILUNE = os.path.join(BUILD, "bin", "perilune")
WORK = os.path.join(BUILD, "cross")
# Of each set: relative tolerance, and absolute as a part of the output's largest magnitude. Folded float arithmetic may
# round differently; a wrong rewrite is far off.
RTOL, ATOL = 1e-3, 1e-4
# These hold random nodes: their outputs differ from run to run, only the structure can be checked.
RANDOM = {"cse_rand", "foldfail"}


def unpacked_torch():
    folder = os.path.join(BUILD, "models")
    archive = os.path.join(SHARED, "models", "torch.tar.xz")
    if not os.path.isdir(os.path.join(folder, "torch")) and os.path.exists(archive):
        with tarfile.open(archive) as tar:
            tar.extractall(folder)
    return os.path.join(folder, "torch")


# Small ones of every family and opset that exporters write otherwise, and a real one.
ZOO = {
    "resnet50": [],
    "resnet": ["depth=18", "width=8", "image=32", "opset=14"],
    "mobilenetv2": ["width=0.25", "image=32", "opset=20"],
    **{f"bert-{o}": ["layers=2", "hidden=32", "heads=4", "intermediate=64", "vocabulary=100", f"opset={o}"]
       for o in (14, 17, 18, 20, 22)},
    "gpt2": ["layers=2", "hidden=32", "heads=4", "vocabulary=100"],
    "gpt2-14": ["layers=2", "hidden=32", "heads=4", "vocabulary=100", "opset=14"],
    "vit": ["layers=2", "hidden=32", "heads=4", "mlp=64", "image=32", "patch=8"],
    "vit-22": ["layers=2", "hidden=32", "heads=4", "mlp=64", "image=32", "patch=8", "opset=22"],
    "lstm": ["hidden=20", "vocabulary=100"],
    "lstm-both": ["hidden=20", "vocabulary=100", "directions=2", "opset=22"],
}


def zoo_model(name):
    folder = os.path.join(WORK, name)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "model.onnx")
    family = name.split("-")[0]
    settings = [word for value in ZOO[name] for word in ("--set", value)]
    subprocess.run([PERILUNE, "zoo", family, "-o", path, *settings], check=True)
    return folder


def folders(kind):
    if kind == "zoo":
        return [zoo_model(name) for name in ZOO]
    parent = {"light": os.path.join(SHARED, "models"), "defects": os.path.join(SHARED, "conformance", "incumbent-defects")}
    root = unpacked_torch() if kind == "torch" else parent[kind]
    if not os.path.isdir(root):
        print(f"{root} is not there")
        sys.exit(77)
    return [os.path.join(root, d) for d in sorted(os.listdir(root)) if os.path.exists(os.path.join(root, d, "model.onnx"))]


def optimise(source, target):
    run = subprocess.run([PERILUNE, "opt", source, "-o", target, "-q"], capture_output=True, text=True)
    if run.returncode != 0:
        raise AssertionError(f"opt fails with {run.returncode}: {run.stderr.strip()[-2000:]}")


def session(path):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def read_value(path, declared):
    """A stored input: which kind of message it is follows from the input's type."""
    with open(path, "rb") as file:
        data = file.read()
    kind = declared.WhichOneof("value")
    if kind == "sequence_type":
        return onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return onnx.numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    tensor = onnx.TensorProto.FromString(data)
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(
        onnx.numpy_helper.to_array(tensor).view(numpy.uint16), tensor.data_type
    ) if tensor.data_type == onnx.TensorProto.BFLOAT16 else onnx.numpy_helper.to_array(tensor)


def data_sets(folder, model):
    held = {i.name for i in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in held or model.ir_version >= 4]
    sets = sorted(d for d in os.listdir(folder) if d.startswith("test_data_set_"))
    for name in sets:
        feed = {}
        for k, declared in enumerate(inputs):
            path = os.path.join(folder, name, f"input_{k}.pb")
            if os.path.exists(path):
                feed[declared.name] = read_value(path, declared.type)
        yield name, feed
    if not sets:
        yield "noise", {i.name: noise(i.type.tensor_type) for i in inputs}


def noise(declared):
    """Numbers for a float input, tokens 0 and 1 for others; a name of a dim is 2."""
    shape = [d.dim_value or 2 for d in declared.shape.dim]
    random = numpy.random.default_rng(0)
    if declared.elem_type == onnx.TensorProto.FLOAT:
        return random.standard_normal(shape, dtype=numpy.float32)
    return random.integers(0, 2, shape)


def run(one, feed):
    ort_values = {k: v if isinstance(v, onnxruntime.OrtValue) else None for k, v in feed.items()}
    if any(v is not None for v in ort_values.values()):
        feed = {k: ort_values[k] or onnxruntime.OrtValue.ortvalue_from_numpy(v) for k, v in feed.items()}
        return [o.numpy() for o in one.run_with_ort_values(None, feed)]
    return one.run(None, feed)


def same(a, b, where):
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b), f"{where}: {len(a)} elements became {len(b)}"
        for i, (x, y) in enumerate(zip(a, b)):
            same(x, y, f"{where}[{i}]")
        return
    if a is None or b is None:
        assert a is None and b is None, f"{where}: a value became none, or none a value"
        return
    a, b = numpy.asarray(a), numpy.asarray(b)
    assert a.shape == b.shape and a.dtype == b.dtype, f"{where}: {a.dtype}{a.shape} became {b.dtype}{b.shape}"
    if a.dtype.kind not in "fc":
        assert (a == b).all(), f"{where}: values differ"
        return
    finite = numpy.abs(a[numpy.isfinite(a)])
    scale = float(finite.max()) if finite.size else 1.0
    if not numpy.allclose(a, b, rtol=RTOL, atol=ATOL * max(scale, 1e-30), equal_nan=True):
        raise AssertionError(f"{where}: values differ by up to {numpy.nanmax(numpy.abs(a - b))} of {scale}")


def compare(folder, source, target, name):
    try:
        before = session(source)
    except Exception as error:  # onnxruntime cannot run the original: nothing to compare with
        return f"not run by onnxruntime ({str(error).splitlines()[0][:80]})"
    after = session(target)
    if name in RANDOM:
        return "random: only loaded"
    names = [o.name for o in before.get_outputs()]
    assert names == [o.name for o in after.get_outputs()], "outputs are called otherwise"
    model = onnx.load(source, load_external_data=False)
    for data, feed in data_sets(folder, model):
        same(run(before, feed), run(after, feed), data)
    return "same"


def count(graph):
    total = 0
    for node in graph.node:
        total += 1
        for attribute in node.attribute:
            total += sum(count(g) for g in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs))
    return total


def check(folder):
    name = os.path.basename(folder)
    source = os.path.join(folder, "model.onnx")
    out = os.path.join(WORK, name)
    os.makedirs(out, exist_ok=True)
    once, again, twice = (os.path.join(out, f"{w}.onnx") for w in ("once", "again", "twice"))
    optimise(source, once)
    optimise(source, again)
    assert filecmp.cmp(once, again, shallow=False), "two runs write different bytes"
    optimise(once, twice)
    assert filecmp.cmp(once, twice, shallow=False), "optimising the result changes it"
    onnx.checker.check_model(once)
    outcome = compare(folder, source, once, name)
    nodes = [count(onnx.load(p, load_external_data=False).graph) for p in (source, once)]
    for path in (again, twice):
        os.remove(path)
    return f"{nodes[0]} -> {nodes[1]} nodes, {outcome}"


def main():
    wanted = sys.argv[2:]
    failures = 0
    for folder in folders(sys.argv[1]):
        name = os.path.basename(folder)
        if wanted and name not in wanted:
            continue
        try:
            print(f"ok   {name}: {check(folder)}", flush=True)
        except Exception as error:  # each model is one case
            failures += 1
            print(f"FAIL {name}: {str(error)[:2000]}", flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
