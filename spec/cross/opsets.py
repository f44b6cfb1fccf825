"""Converts models to other opsets and compares with what others say of the result.

    opsets.py light|torch|zoo|node [OPSET]... [-- NAME...]

For each model and each opset (13, 17, 18, 20, 21, 23 when none is named): `perilune opt -p '' --opset N`, and once more with the
default pipeline, either refuses with the operator and the opset that it needs, or writes a model of opset N that onnx's
checker accepts with full type inference, and from which onnxruntime, its own optimisations off, computes the same as from
the original. At the end a table tells how many models each opset accepts, and what was refused for which operator. Exit
status 77 when the data or the packages are not there."""
import collections
import os
import re
import subprocess
import sys

import optimise
from optimise import PERILUNE, WORK, data_sets, onnx, run, same, session

OPSETS = (13, 17, 18, 20, 21, 23)
PIPELINES = {"plain": ["-p", ""], "optimised": []}
REFUSED = re.compile(r"the operator (\S+) (needs opset \d+|cannot be written at opset \d+)")


def node_cases():
    root = os.path.join(optimise.BUILD, "conformance", "node")
    if not os.path.isdir(root):
        print(f"{root} is not there; run lua.conformance first")
        sys.exit(77)
    return [os.path.join(root, d) for d in sorted(os.listdir(root)) if os.path.exists(os.path.join(root, d, "model.onnx"))]


def convert(source, target, opset, arguments):
    """None, or why the model has no form at the opset."""
    done = subprocess.run([PERILUNE, "opt", source, "-o", target, "-q", "--opset", str(opset), *arguments],
                          capture_output=True, text=True)
    if done.returncode == 0:
        return None
    refusal = REFUSED.search(done.stderr)
    if done.returncode == 1 and refusal:
        return refusal[1]
    raise AssertionError(f"opt fails with {done.returncode}: {done.stderr.strip()[-600:]}")


def version(model):
    return next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), None)


class Original:
    """A model, its inputs, and what onnxruntime computes from them; the session is gone then."""

    def __init__(self, folder):
        self.source = os.path.join(folder, "model.onnx")
        self.model = onnx.load(self.source, load_external_data=False)
        self.outputs, self.reason = None, None
        try:
            before = session(self.source)
        except Exception as error:
            self.reason = str(error).splitlines()[0][:80]
            return
        self.names = [o.name for o in before.get_outputs()]
        try:
            self.sets = list(data_sets(folder, self.model))
            self.outputs = [run(before, feed) for _, feed in self.sets]
        except Exception as error:  # dtypes that numpy does not have
            self.reason = str(error).splitlines()[0][:80]


def check(original, target, opset):
    model = onnx.load(target, load_external_data=False)
    assert version(model) in (opset, None), f"opset {version(model)} was written"
    onnx.checker.check_model(target, full_check=original.full)
    if original.outputs is None:
        return
    try:
        after = session(target)
    except Exception as error:
        if "NOT_IMPLEMENTED" in str(error):  # onnxruntime has no kernel of that version
            return
        raise
    assert original.names == [o.name for o in after.get_outputs()], "outputs are called otherwise"
    for (name, feed), wanted in zip(original.sets, original.outputs):
        same(wanted, run(after, feed), name)


def full_check_passes(source):
    """Inference of the original model itself may fail in onnx: then it proves nothing of the converted one."""
    try:
        onnx.checker.check_model(source, full_check=True)
        return True
    except Exception:
        return False


def main():
    words = sys.argv[2:]
    names = words[words.index("--") + 1:] if "--" in words else []
    opsets = [int(w) for w in (words[:words.index("--")] if "--" in words else words)] or OPSETS
    models = node_cases() if sys.argv[1] == "node" else optimise.folders(sys.argv[1])
    accepted, refused, failures = collections.Counter(), collections.Counter(), 0
    for folder in models:
        name = os.path.basename(folder)
        if names and name not in names:
            continue
        original = Original(folder)
        original.full = full_check_passes(original.source)
        out = os.path.join(WORK, "opsets", name)
        os.makedirs(out, exist_ok=True)
        for opset in opsets:
            for pipeline, arguments in PIPELINES.items():
                target = os.path.join(out, f"{pipeline}.onnx")
                try:
                    why = convert(original.source, target, opset, arguments)
                    if why:
                        refused[opset, why] += pipeline == "plain"
                        continue
                    check(original, target, opset)
                    accepted[opset] += pipeline == "plain"
                except Exception as error:  # each model, opset and pipeline is one case
                    failures += 1
                    print(f"FAIL {name} at {opset}, {pipeline}: {str(error)[:700]}", flush=True)
    for opset in opsets:
        reasons = ", ".join(f"{why} {n}" for (o, why), n in sorted(refused.items()) if o == opset and n)
        print(f"opset {opset}: {accepted[opset]} accepted, {sum(n for (o, _), n in refused.items() if o == opset)} refused"
              f"{': ' + reasons if reasons else ''}")
    print(f"{failures} failures")
    sys.exit(1 if failures else 0)


main()
