"""Compares models field by field, with the onnx package as the judge.

    python roundtrip.py                      all models of $PERILUNE_SHARED
    python roundtrip.py PERILUNE DIR...      writes each model with no pass
    python roundtrip.py --pairs FILE         compares "before after" lines

Two models are equal when every field is: known ones by value, unknown ones by
their bytes. Prints what differs first; the last line counts. Exit status 1 when
any differs, 77 when there is no onnx package (a skip).
"""

import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

try:
    import onnx
    from google.protobuf import unknown_fields
except ImportError:
    print("skipped: no onnx package")
    sys.exit(77)


def unknown(message):
    """The unknown fields of a message as comparable tuples."""

    def plain(fields):
        for f in fields:
            data = f.data
            if f.wire_type == 3:
                data = tuple(plain(data))
            yield (f.field_number, f.wire_type, data)

    # Only the order within one field number means anything.
    return sorted(plain(unknown_fields.UnknownFieldSet(message)),
                  key=lambda f: f[0])


def first_difference(a, b):
    """The path of the first field that differs, or None."""
    work = [("", a, b)]
    while work:
        path, x, y = work.pop()
        if unknown(x) != unknown(y):
            return path + "/(unknown fields)"
        for field in x.DESCRIPTOR.fields:
            where = f"{path}/{field.name}"
            xs, ys = values(x, field), values(y, field)
            if len(xs) != len(ys):
                return f"{where}: {len(xs)} values, then {len(ys)}"
            for i, (v, w) in enumerate(zip(xs, ys)):
                if field.message_type:
                    work.append((f"{where}[{i}]", v, w))
                elif v != w and not (v != v and w != w):
                    return f"{where}[{i}]: {v!r:.80}, then {w!r:.80}"
    return None


def values(message, field):
    """A field's values as a list; empty when it is not there."""
    if repeated(field):
        return list(getattr(message, field.name))
    return [getattr(message, field.name)] if message.HasField(field.name) else []


def repeated(field):
    flag = getattr(field, "is_repeated", None)
    return flag if flag is not None else field.label == field.LABEL_REPEATED


def load(path):
    return onnx.load(path, load_external_data=False)


def compare(before, after):
    difference = first_difference(load(before), load(after))
    if difference:
        print(f"{before}: {difference}")
    return difference is None


def written(perilune, folder, directory):
    """Pairs of each model below `folder` and what perilune makes of it."""
    for n, path in enumerate(sorted(pathlib.Path(folder).rglob("*.onnx"))):
        out = pathlib.Path(directory) / f"{n}.onnx"
        run = subprocess.run(
            [perilune, "opt", str(path), "-o", str(out), "-p", "", "-q"],
            capture_output=True, text=True)
        if run.returncode:
            print(f"{path}: {run.stderr.strip()}")
        yield path, out if run.returncode == 0 else None


def shared_models():
    """Folders with the shared models, archives unpacked below the build."""
    shared = pathlib.Path(os.environ.get("PERILUNE_SHARED", "../shared"))
    build = pathlib.Path(os.environ.get("PERILUNE_BUILD", "build"))
    if not shared.is_dir():
        print(f"skipped: {shared} is not there")
        sys.exit(77)
    folders = [str(shared / "models"), str(shared / "conformance")]
    for archive, name in (("models/torch", "models"),
                          ("conformance/onnx-node", "conformance/node"),
                          ("conformance/onnx-simple", "conformance/simple")):
        source, target = shared / f"{archive}.tar.xz", build / name
        marker = target / pathlib.Path(archive).name.split("-")[-1]
        if source.exists() and not marker.exists():
            target.mkdir(parents=True, exist_ok=True)
            with tarfile.open(source) as tar:
                tar.extractall(target)
            marker.mkdir(exist_ok=True)
        folders.append(str(target))
    return [str(build / "bin" / "perilune")] + folders


def main(arguments):
    good = bad = 0
    arguments = arguments or shared_models()
    if arguments[:1] == ["--pairs"]:
        with open(arguments[1]) as lines:
            pairs = [line.split() for line in lines]
        for before, after in pairs:
            good, bad = tally(good, bad, compare(before, after))
    for folder in arguments[1:] if arguments[:1] != ["--pairs"] else []:
        with tempfile.TemporaryDirectory() as directory:
            for path, out in written(arguments[0], folder, directory):
                good, bad = tally(good, bad, out and compare(path, out))
    print(f"{good} equal, {bad} different")
    return 1 if bad else 0


def tally(good, bad, equal):
    return (good + 1, bad) if equal else (good, bad + 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
