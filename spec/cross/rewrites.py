"""What onnx's checker says of models that rules made at random leave.

    python rewrites.py [COUNT]

Runs spec/transform/random_rewrite_spec.lua with COUNT rewrites (2000) and has
onnx.checker check each model that was written, shapes inferred. Prints what it
refuses though it takes the model before the rewrite, but for outputs without a rank, of which export warns: those it must
refuse. The last line counts. Exit status 1 when there is any, 77 when there is
no onnx package (a skip).
"""

import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import onnx
    import onnx.checker
except ImportError:
    print("skipped: no onnx package")
    sys.exit(77)


def write_models(directory, count):
    build = os.environ.get("PERILUNE_BUILD", "build")
    environment = dict(os.environ, PERILUNE_MODELS=directory,
                       PERILUNE_REWRITES=str(count))
    return subprocess.run(
        ["lua5.4", "/usr/bin/busted", f"--cpath={build}/lua/?.so",
         "spec/transform/random_rewrite_spec.lua"], env=environment).returncode


def refused(path):
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except Exception as error:  # the checker raises errors of several kinds
        return str(error).strip().split("\n")[0]
    return None


def wrong_of(path):
    why = refused(path)
    if path.name.endswith(".unranked.onnx"):
        if not why:
            return "export warns of a rank without need"
        return None if why.startswith("Field 'shape' of 'type'") else why
    before = path.with_suffix(".before.onnx")
    return why if why and not (before.exists() and refused(before)) else None


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    with tempfile.TemporaryDirectory() as directory:
        if write_models(directory, count) != 0:
            return 1
        paths = sorted(path for path in pathlib.Path(directory).glob("*.onnx")
                       if not path.name.endswith(".before.onnx"))
        wrong = 0
        for path in paths:
            why = wrong_of(path)
            if why:
                wrong += 1
                print(f"seed {path.name.split('.')[0]}: {why}")
        unranked = sum(path.name.endswith(".unranked.onnx") for path in paths)
    print(f"{len(paths)} models, {unranked} without a rank, {wrong} refused")
    return 1 if wrong or not paths else 0


sys.exit(main())
