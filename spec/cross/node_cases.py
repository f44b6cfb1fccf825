"""Runs ONNX's own cases of operators, as the installed onnx package makes them, and compares with its results.

    node_cases.py [PART]

PART picks cases by a part of their names. All are run as they are and optimised by rules whose results are equal bit by
bit; those of EXCEPTIONS may fail for the reason there."""
import os
import re
import subprocess
import sys
import tempfile

import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case import node

PERILUNE = os.path.join(os.environ.get("PERILUNE_BUILD", "build"), "bin", "perilune")

# By a pattern of names.
EXCEPTIONS = {
    r"bernoulli(?!.*zero_ratio)": "random draws",
    r"training_dropout(?!.*zero_ratio)": "random draws",
    r"dft_inverse": "rounding noise expected beyond atol 1e-7",
    r"attention.*_fp16_expanded": "the reference rounds each step of a function to float16",
}

# What the command says of images in other formats, or whose library is not there.
NOT_DECODED = re.compile(r"'image_decoder': .*(cannot be opened|are not decoded)")


def write(path, value, kind):
    if isinstance(value, TensorProto):
        proto = value
    elif kind == "tensor_type":
        proto = numpy_helper.from_array(value)
    elif kind == "sequence_type":
        proto = numpy_helper.from_list(value)
    elif kind == "optional_type":
        proto = numpy_helper.from_optional(value)
    else:
        proto = numpy_helper.from_dict(value)
    with open(path, "wb") as file:
        file.write(proto.SerializeToString())


def save(case, folder):
    """The folder of the case: model.onnx and its data."""
    os.makedirs(folder)
    with open(os.path.join(folder, "model.onnx"), "wb") as file:
        file.write(case.model.SerializeToString())
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data = os.path.join(folder, f"test_data_set_{number}")
        os.mkdir(data)
        for prefix, values, infos in ("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output):
            for i, (value, info) in enumerate(zip(values, infos)):
                write(os.path.join(data, f"{prefix}_{i}.pb"), value, info.type.WhichOneof("value"))


def reason_of(name):
    return next((reason for pattern, reason in EXCEPTIONS.items() if re.search(pattern, name)), None)


def test(folders, *options):
    """The lines of cases that did not pass and are no exceptions, and how many passed."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as names:
        names.write("\n".join(folders) + "\n")
        names.flush()
        ended = subprocess.run([PERILUNE, "test", "--from", names.name, *options], capture_output=True, text=True)
    *lines, last = ended.stdout.splitlines() or [""]
    passed = re.match(r"(\d+) passed", last)
    if not passed:
        sys.exit(f"perilune test ended with status {ended.returncode}: {ended.stderr}")
    failed = [line for line in lines
              if not reason_of(line.split(":")[0].rsplit("/", 1)[-1]) and not NOT_DECODED.search(line)]
    return failed, int(passed[1])


def main(part=""):
    with tempfile.TemporaryDirectory() as folder:
        folders = []
        for case in node.collect_testcases(None):
            if part in case.name:
                folders.append(os.path.join(folder, case.name))
                save(case, folders[-1])
        if not folders:
            sys.exit(f"no case has {part!r} in its name")
        wrong = 0
        for options in (), ("--opt", "--exact"):
            failed, passed = test(folders, *options)
            wrong += len(failed)
            print(*failed, sep="\n", end="\n" if failed else "")
            print(f"{' '.join(options) or 'as they are'}: {passed} of {len(folders)} cases of onnx {onnx.__version__} passed")
    sys.exit(wrong > 0)


main(*sys.argv[1:])
