"""Compares the tables of ONNX's operators with onnx's own schemas, each operator and each version.

    onnx_schemas.py            compares; exit status 77 when onnx is not there
    onnx_schemas.py --print    prints engine/onnx/schemas.def anew

engine/onnx/schemas.def must be what --print prints. In engine/onnx/ops.def each row's `since` must be the version from which
its operator exists, no operator may be missing, and the default of each attribute that ONNX tells, at each version, must be
what the core takes for granted there: the row's implied attribute, else the default in engine/op/ops.def."""
import re
import sys

try:
    import onnx
    import onnx.defs
    import onnx.helper
except ImportError as missing:
    print(missing)
    sys.exit(77)

SCHEMAS, OPS, CORE = "engine/onnx/schemas.def", "engine/onnx/ops.def", "engine/op/ops.def"
NAMES = "engine/onnx/attr_names.def"
# Models below this opset are kept as they are.
LEAST = 7

DTYPES = {
    "float": "FLOAT32", "uint8": "UINT8", "int8": "INT8", "uint16": "UINT16", "int16": "INT16", "int32": "INT32",
    "int64": "INT64", "string": "STRING", "bool": "BOOL", "float16": "FLOAT16", "double": "FLOAT64", "uint32": "UINT32",
    "uint64": "UINT64", "complex64": "COMPLEX64", "complex128": "COMPLEX128", "bfloat16": "BFLOAT16",
    "float8e4m3fn": "FLOAT8_E4M3FN", "float8e4m3fnuz": "FLOAT8_E4M3FNUZ", "float8e5m2": "FLOAT8_E5M2",
    "float8e5m2fnuz": "FLOAT8_E5M2FNUZ", "uint4": "UINT4", "int4": "INT4", "float4e2m1": "FLOAT4_E2M1FN",
    "float8e8m0": "FLOAT8_E8M0FNU", "uint2": "UINT2", "int2": "INT2",
}

HEAD = '''/* schemas.def: inputs, outputs and attributes of each version of each ai.onnx
 * operator. Printed by spec/cross/onnx_schemas.py from onnx's schemas, which
 * its test compares with this file. Versions that only opsets before 7 use are
 * left out.
 *
 * TYPES(number, tensors, sequences, optionals)
 *   a set of types: dtypes of tensors, dtypes of tensors in sequences, and
 *   whether optionals are allowed
 * SCHEMA("Type", since, deprecated, "inputs", "outputs", "attributes")
 *   inputs, outputs  a word each: the number of its set of types; a letter, if
 *                    all parameters with that letter have one type; "?":
 *                    optional; "*": variadic, one type; "~": variadic, any
 *   attributes       names; "!" marks required ones
 * Rows of one operator are adjacent, sorted by version. */
/* clang-format off */
'''


def schemas(domain=""):
    """Operator -> its schemas in order of versions."""
    rows = {}
    for s in onnx.defs.get_all_schemas_with_history():
        if s.domain == domain:
            rows.setdefault(s.name, []).append(s)
    for versions in rows.values():
        versions.sort(key=lambda s: s.since_version)
    return rows


def in_effect(versions):
    """Those that an opset from LEAST on has."""
    return [s for s, after in zip(versions, versions[1:] + [None]) if after is None or after.since_version > LEAST]


class TypeSets:
    def __init__(self):
        self.numbers = {}

    def number(self, types):
        tensors, sequences, optionals = set(), set(), False
        for text in types:
            match = re.fullmatch(r"(seq\()?tensor\((\w+)\)\)?", text)
            if match and match[2] in DTYPES:
                (sequences if match[1] else tensors).add(DTYPES[match[2]])
            optionals = optionals or text.startswith("optional(")
        order = list(DTYPES.values())
        key = tuple(tuple(sorted(s, key=order.index)) for s in (tensors, sequences)) + (int(optionals),)
        return self.numbers.setdefault(key, len(self.numbers))

    def text(self):
        def mask(names):
            return " | ".join(f"T({n})" for n in names) or "0"
        return "".join(f"TYPES({n}, {mask(t)}, {mask(s)}, {o})\n" for (t, s, o), n in self.numbers.items())


def parameters(schema, formals, sets):
    # A letter for each type variable that more than one formal has.
    variables = [f.type_str for f in list(schema.inputs) + list(schema.outputs)]
    shared = [v for v in dict.fromkeys(variables) if "(" not in v and variables.count(v) > 1]
    words = []
    for f in formals:
        letter = chr(ord("a") + shared.index(f.type_str)) if f.type_str in shared else ""
        option = {"Single": "", "Optional": "?", "Variadic": "*" if f.is_homogeneous else "~"}[f.option.name]
        if option == "~":
            letter = ""
        words.append(f"{sets.number(f.types)}{letter}{option}")
    return " ".join(words)


def table():
    sets, rows = TypeSets(), []
    for name, versions in sorted(schemas().items()):
        for s in in_effect(versions):
            attributes = " ".join(name + "!" * s.attributes[name].required for name in sorted(s.attributes))
            rows.append(f'SCHEMA("{name}", {s.since_version}, {int(s.deprecated)}, "{parameters(s, s.inputs, sets)}", '
                        f'"{parameters(s, s.outputs, sets)}", "{attributes}")\n')
    return HEAD + sets.text() + "".join(rows) + "/* clang-format on */\n#undef TYPES\n#undef SCHEMA\n"


def read_rows():
    """The rows of ops.def: (domain, type, from, since, core operator, implied attributes)."""
    pattern = r'^ONNX\("([^"]*)",\s*"(\w+)",\s*(\d+),\s*(\d+),\s*(\w+),\s*"([^"]*)"\)'
    with open(OPS) as file:
        found = re.findall(pattern, file.read(), re.M)
    return [(domain, name, int(least), int(since), core, dict(w.lstrip("!").split("=") for w in implied.split()))
            for domain, name, least, since, core, implied in found]


def read_names():
    """(core operator, core name) -> ONNX's name of the attributes that have two."""
    with open(NAMES) as file:
        found = re.findall(r'^ATTR_NAME\((\w+),\s*"(\w+)",\s*"(\w+)"\)', file.read(), re.M)
    return {(operator, core): name for operator, name, core in found}


def read_core():
    """Core operator -> {attribute, by ONNX's name: (kind, default or None)}."""
    core, names = {}, read_names()
    with open(CORE) as file:
        for name, text in re.findall(r'^OP\((\w+),\s*"[^"]*",\s*-?\d+,\s*-?\d+, "([^"]*)"', file.read(), re.M):
            words = (w.partition("=") for w in text.split())
            core[name] = {}
            for head, is_, default in words:
                attribute, kind = head.split(":")[:2]
                core[name][names.get((name, attribute), attribute)] = (kind, default if is_ else None)
    return core


def same_default(text, value):
    if isinstance(value, bytes):
        return text == value.decode()
    if isinstance(value, list):
        return text is not None and [int(i) for i in text.split(",")] == value
    return text is not None and abs(float(text) - value) <= 1e-6 * max(1, abs(value))


# What the core does not take from the tables, and why.
EXEMPT = {
    (None, "consumed_inputs"): "says nothing; below opset 6",
    ("Constant", "sparse_value"): "such a Constant stays opaque",
    ("Clip", "min"): "left out, there is no limit",
    ("Clip", "max"): "left out, there is no limit",
    ("RNN", "activations"): "the kernel knows them",
    ("Range", "stash_type"): "tells how partial sums are rounded, which the kernel does not ask",
}


def default_of(schema, name):
    proto = schema.attributes[name].default_value
    return onnx.helper.get_attribute_value(proto) if proto.type else None


def check_defaults(row, versions, until, core):
    domain, name, least, since, operator, implied = row
    for version in versions:
        following = [v for v in versions if v.since_version > version.since_version]
        if version.since_version >= until or (following and following[0].since_version <= since):
            continue
        for attribute in version.attributes:
            if (name, attribute) in EXEMPT or (None, attribute) in EXEMPT:
                continue
            if attribute not in core[operator]:
                yield f"{name} {version.since_version}: the core does not know '{attribute}'"
                continue
            value, text = default_of(version, attribute), implied.get(attribute, core[operator][attribute][1])
            if value is not None and not same_default(text, value):
                yield f"{name} {version.since_version}: '{attribute}' is {value!r} by default, here {text}"


# ONNX Runtime defines these in ONNX's domain, and all of com.microsoft; spec/cross/contrib.py compares them.
RUNTIME_OPERATORS = {"SimplifiedLayerNormalization"}


def check_rows():
    if [row[:3] for row in read_rows()] != sorted(row[:3] for row in read_rows()):
        yield f"{OPS} is not in order"
    rows, core = read_rows(), read_core()
    all_schemas = {s.domain: schemas(s.domain) for s in onnx.defs.get_all_schemas()}
    for row in rows:
        domain, name, least, since, operator, _ = row
        if domain == "com.microsoft" or name in RUNTIME_OPERATORS:
            continue
        versions = all_schemas[domain].get(name)
        if not versions:
            yield f"{name}: ONNX has no such operator"
            continue
        first = min(v.since_version for v in versions if v.since_version >= least and
                    (not v.deprecated or v is versions[-1]))
        if since != first:
            yield f"{name}: there since {first}, here {since}"
        until = min((r[2] for r in rows if r[:2] == row[:2] and r[2] > least), default=10**6)
        yield from check_defaults(row, versions, until, core)
    known = {row[1] for row in rows if row[0] == ""} | {"If"}
    for name in sorted(set(all_schemas[""]) - known):
        yield f"{name}: no row in {OPS}"


def main():
    if sys.argv[1:] == ["--print"]:
        sys.stdout.write(table())
        return
    failures = list(check_rows())
    with open(SCHEMAS) as file:
        if file.read() != table():
            failures.append(f"{SCHEMAS} is not what --print prints from onnx {onnx.__version__}")
    print("\n".join(failures) or f"{len(read_rows())} rows agree with onnx {onnx.__version__}")
    sys.exit(1 if failures else 0)


main()
