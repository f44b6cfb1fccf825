"""What comparisons of single operators with onnxruntime share: models of one node on random inputs, and their run.

    single_node.run(cases, "contrib")

A case is a function that makes a Call from a generator of random numbers. onnxruntime's optimisations are off. Exit status
77 when packages are not there."""
import os
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


class Call:
    """A node: its inputs (arrays, or None where one is omitted), attributes, and the number of outputs, or their names; one
    that begins with an underscore is not compared."""

    def __init__(self, name, inputs, attributes=None, outputs=1, domain="com.microsoft", names=None, version=1):
        self.name, self.inputs, self.attributes = name, inputs, attributes or {}
        self.outputs = names or [f"y{i}" for i in range(outputs)]
        self.domain, self.version = domain, version
        self.rounded = False  # quantised results, which may differ by one

    def model(self):
        names = ["" if x is None else f"x{i}" for i, x in enumerate(self.inputs)]
        infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
                 for n, x in zip(names, self.inputs) if x is not None]
        node = helper.make_node(self.name, names, self.outputs, domain=self.domain, **self.attributes)
        nodes, results = [node], [o for o in self.outputs if o and o[0] != "_"]
        if self.rounded:
            nodes += [helper.make_node("Cast", [o], [o + "_f"], to=T.FLOAT) for o in results]
            results = [o + "_f" for o in results]
        graph = helper.make_graph(nodes, self.name, infos, [onnx.ValueInfoProto(name=o) for o in results])
        return helper.make_model(graph, ir_version=10, opset_imports=[
            helper.make_opsetid("", 17), helper.make_opsetid(self.domain or "com.microsoft", self.version)])

    def feed(self):
        return {f"x{i}": x for i, x in enumerate(self.inputs) if x is not None}


def rounded(call):
    call.rounded = True
    return call


def floats(rng, *shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def maybe(rng, x):
    return x if rng.random() < 0.5 else None


def small_shape(rng, least=1, most=4):
    return tuple(int(n) for n in rng.integers(1, 6, rng.integers(least, most + 1)))


def flag(rng):
    return int(rng.integers(0, 2))


def write_case(folder, call):
    """Writes the model and its data; the reason if onnxruntime does not run it."""
    model = call.model()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        results = session.run(None, call.feed())
    except Exception as error:  # its own exceptions have no common class
        return str(error).splitlines()[0]
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    for kind, tensors in (("input", call.feed().values()), ("output", results)):
        for i, x in enumerate(tensors):
            with open(os.path.join(data, f"{kind}_{i}.pb"), "wb") as file:
                file.write(numpy_helper.from_array(np.asarray(x)).SerializeToString())
    return None


def compare(folders, listed, rtol, atol):
    """The lines of those that fail; none may be skipped."""
    if not folders:
        return []
    with open(listed, "w", encoding="utf-8") as file:
        file.write("\n".join(folders))
    run = subprocess.run([PERILUNE, "test", "-j", "2", "--rtol", rtol, "--atol", atol, "--from", listed],
                         capture_output=True, text=True, check=False)
    lines = run.stdout.splitlines()
    if lines and lines[-1] == f"{len(folders)} passed, 0 failed, 0 skipped":
        return []
    return [line for line in lines if not line.startswith("PASS")] + run.stderr.splitlines()


def run(cases, name):
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    wanted = sys.argv[3] if len(sys.argv) > 3 else ""
    work = os.path.join(BUILD, "cross", name)
    listed = os.path.join(work, "list")
    shutil.rmtree(work, ignore_errors=True)
    plain, off_by_one, refused = [], [], {}
    for make in cases:
        for i in range(rounds if wanted in ("", make.__name__) else 0):
            folder = os.path.join(work, f"{make.__name__}_{i}")
            call = make(np.random.default_rng([seed, i, len(make.__name__)]))
            why = write_case(folder, call)
            if why:
                refused.setdefault(make.__name__, []).append(why)
            else:
                (off_by_one if call.rounded else plain).append(folder)
    failures = compare(plain, listed, "1e-3", "1e-4") + compare(off_by_one, listed, "0", "1")
    for case, reasons in refused.items():
        print(f"{case}: onnxruntime refuses {len(reasons)} of {rounds}: {reasons[0][:300]}")
        if len(reasons) == rounds:
            failures.append(f"{case} is compared with nothing")
    print("\n".join(failures))
    print(f"seed {seed}: {len(plain) + len(off_by_one)} models, {len(failures)} lines of failures")
    return 1 if failures else 0
