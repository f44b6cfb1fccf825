"""Compares models field by field, with the onnx package as the judge.

    python roundtrip.py                      all models of $PERILUNE_SHARED, and
                                             each attribute of each operator of
                                             onnx as a reference
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
    import onnx.defs
    import onnx.helper
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


OPSETS = (7, 9, 10, 11, 12, 13, 16, 18, 20, 21, 23)


def reference_node(schema, name, attribute, n):
    """A node whose attribute is one of the function that it stands in."""
    inputs = ["x"] * max(schema.min_input, 1)
    node = onnx.helper.make_node(schema.name, inputs, [f"v{n}"], domain=schema.domain)
    reference = node.attribute.add(name=name, ref_attr_name=f"of_{name}")
    reference.type = int(getattr(attribute.type, "value", attribute.type))
    return node


def reference_model(opset):
    """Each attribute of each operator, as a reference, in one local function."""
    nodes, names = [], set()
    for domain, version in (("", opset), ("ai.onnx.ml", 3)):
        latest = {}
        for schema in onnx.defs.get_all_schemas_with_history():
            known = latest.get(schema.name)
            if schema.domain == domain and schema.since_version <= version and (
                    known is None or known.since_version < schema.since_version):
                latest[schema.name] = schema
        for schema in latest.values():
            for name, attribute in schema.attributes.items():
                nodes.append(reference_node(schema, name, attribute, len(nodes)))
                names.add(f"of_{name}")
    nodes.append(onnx.helper.make_node("Relu", ["x"], ["y"]))
    opsets = [onnx.helper.make_opsetid("", opset), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    function = onnx.helper.make_function("local", "F", ["x"], ["y"], nodes, opsets, sorted(names))
    values = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2, 3]) for n in "xy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("F", ["x"], ["y"], domain="local")], "g",
                                   values[:1], values[1:])
    return onnx.helper.make_model(graph, functions=[function], ir_version=8,
                                  opset_imports=opsets + [onnx.helper.make_opsetid("local", 1)])


def reference_models():
    folder = pathlib.Path(os.environ.get("PERILUNE_BUILD", "build")) / "cross" / "references"
    folder.mkdir(parents=True, exist_ok=True)
    for opset in OPSETS:
        onnx.save(reference_model(opset), folder / f"{opset}.onnx")
    return str(folder)


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
    return [str(build / "bin" / "perilune"), reference_models()] + folders


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
