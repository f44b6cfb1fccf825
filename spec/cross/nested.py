"""Random models with graphs in graphs, before and after passes.

    nested.py [SEED]

Ifs with known and unknown conditions and Loops, in each other and in local functions; initializers, value_info and node
names in every graph; names that come again in siblings and what is in them; results that nobody uses. For each model and pipeline: `perilune opt` succeeds and reads its own result; onnx's checker accepts it with
shape inference; onnxruntime, its own optimisations off, computes the same; so it is by way of Relay text. With no pass the model comes back equal field
by field. PERILUNE_MODELS says how many models (200). A model that fails is kept. Exit status 77 when packages are missing.
"""
import os
import random
import subprocess
import sys

try:
    import numpy
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper
except ImportError as missing:
    print(missing)
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from roundtrip import first_difference  # noqa: E402

BUILD = os.environ.get("PERILUNE_BUILD", "build")
PERILUNE = os.path.join(BUILD, "bin", "perilune")
WORK = os.path.join(BUILD, "cross", "nested")
MODELS = int(os.environ.get("PERILUNE_MODELS", "200"))
PASSES = ["SimplifyExpr", "FoldConstant", 'FoldConstant{fold="all"}', "EliminateCommonSubexpr", "DeadCodeElimination",
          "Inline", "InferType", "FoldConvBias", "MatMulAddToGemm"]
# Few names, so that they come again; onnx's shape inference mixes up values of other types that have one name.
NAMES = {kind: [f"{kind[0]}{i}" for i in range(30)] for kind in ("float", "bool", "int")}
TYPES = {"float": TensorProto.FLOAT, "bool": TensorProto.BOOL, "int": TensorProto.INT64}


def info(name, kind):
    return helper.make_tensor_value_info(name, TYPES[kind], [2] if kind == "float" else [])


class Graph:
    """A graph in the making. `outer` has what enclosing graphs define before it, by kind; `taken` all names
    that they have."""

    def __init__(self, rng, outer, taken, depth, function=False):
        self.rng, self.depth, self.function = rng, depth, function
        self.values = {kind: list(names) for kind, names in outer.items()}
        self.taken = set(taken)  # here and around
        self.inside = set()  # in graphs that are done: onnxruntime sorts nodes, and takes those for hidden
        self.nodes, self.initializers, self.own, self.made = [], [], [], []
        self.node_names = set()

    def name(self, kind="float"):
        free = [n for n in NAMES[kind] if n not in self.taken and n not in self.inside]
        name = self.rng.choice(free or [f"{kind}_{self.depth}_{len(self.taken)}_{len(self.inside)}"])
        self.taken.add(name)
        return name

    def define(self, kind, name, node=True):
        self.values[kind].append(name)
        self.made.append((name, kind))
        if node and kind == "float":
            self.own.append(name)
        return name

    def pick(self, kind):
        return self.rng.choice(self.values[kind])

    def add(self, op, inputs, outputs, **attributes):
        node = helper.make_node(op, inputs, outputs, **attributes)
        label = f"n{self.rng.randrange(12)}"
        if self.rng.random() < 0.6 and label not in self.node_names:
            node.name = label
            self.node_names.add(label)
        self.nodes.append(node)

    def constant(self, kind, value):
        name = self.name(kind)
        shape = [2] if kind == "float" else []
        tensor = helper.make_tensor(name, TYPES[kind], shape, value)
        as_node = self.function or self.rng.random() < 0.4
        if as_node:
            self.add("Constant", [], [name], value=tensor)
        else:
            self.initializers.append(tensor)
        return self.define(kind, name, as_node)

    def numbers(self):
        return self.constant("float", [self.rng.choice([0, 1, 2, 0.5, -1]) for _ in range(2)])

    def condition(self):
        r = self.rng.random()
        if r < 0.55 or not self.values["bool"]:
            return self.constant("bool", [self.rng.random() < 0.5])
        return self.pick("bool")

    def inner(self, params=()):
        graph = Graph(self.rng, self.values, self.taken, self.depth + 1, False)
        inputs = []
        for kind in params:
            name = graph.name(kind)
            graph.define(kind, name, False)
            inputs.append(info(name, kind))
        graph.fill()
        self.inside |= graph.taken - self.taken | graph.inside
        return graph, inputs

    def branch(self, n):
        graph, _ = self.inner()
        outputs = graph.results(n)
        self.inside |= graph.taken - self.taken
        return graph.proto([], outputs)

    def put_if(self):
        condition, n = self.condition(), self.rng.choice([1, 1, 2])
        branches = {"then_branch": self.branch(n), "else_branch": self.branch(n)}
        names = [self.name() for _ in range(n)]
        self.add("If", [condition], names, **branches)
        for name in names:
            self.define("float", name)

    def put_loop(self):
        trips, goes = self.constant("int", [self.rng.randrange(3)]), self.constant("bool", [True])
        graph, inputs = self.inner(("int", "bool", "float"))
        again = graph.name("bool")
        graph.add("Identity", [inputs[1].name], [again])
        body = graph.proto(inputs, [(again, "bool")] + graph.results(1))
        self.inside |= graph.taken - self.taken
        start, name = self.pick("float"), self.name()
        self.add("Loop", [trips, goes, start], [name], body=body)
        self.define("float", name)

    def put_top(self):
        k = self.name("int")
        tensor = helper.make_tensor(k, TensorProto.INT64, [1], [2])
        self.add("Constant", [], [k], value=tensor)
        source, name, places = self.pick("float"), self.name(), self.name("int")
        self.add("TopK", [source, k], [name, places])
        self.define("float", name)

    def put(self):
        r = self.rng.random()
        if r < 0.22 and self.depth < 3:
            return self.put_if()
        if r < 0.3 and self.depth < 3:
            return self.put_loop()
        if r < 0.36:
            return self.put_top()
        if r < 0.46:
            return self.numbers()
        if r < 0.7:
            inputs, op = [self.pick("float")], self.rng.choice(["Neg", "Relu", "Identity", "Abs"])
        else:
            inputs, op = [self.pick("float"), self.pick("float")], self.rng.choice(["Add", "Mul", "Sub"])
        if self.depth == 0 and not self.function and self.rng.random() < self.calls:
            inputs, op = inputs[:1], "F"
        name = self.name()
        self.add(op, inputs, [name], **({"domain": "local"} if op == "F" else {}))
        return self.define("float", name)

    calls = 0.0

    def fill(self):
        if not self.values["float"]:
            self.numbers()
        for _ in range(self.rng.randint(1, 5)):
            self.put()

    def results(self, n):
        """Values of this graph; copies where there are too few."""
        names = self.rng.sample(self.own, min(n, len(self.own)))
        while len(names) < n:
            source, name = self.pick("float"), self.name()
            self.add(self.rng.choice(["Identity", "Neg"]), [source], [name])
            self.define("float", name)
            names.append(name)
        return [(name, "float") for name in names]

    def proto(self, inputs, outputs):
        known = {i.name for i in inputs} | {name for name, _ in outputs}
        told = [info(name, kind) for name, kind in self.made if name not in known and self.rng.random() < 0.5]
        return helper.make_graph(self.nodes, f"g{self.depth}", inputs, [info(*o) for o in outputs], self.initializers,
                                 value_info=told if self.rng.random() < 0.5 else [])


def make_model(rng):
    nothing = {"float": [], "bool": [], "int": []}
    opsets = [helper.make_opsetid("", rng.choice([13, 17, 18]))]
    body = Graph(rng, nothing, (), 1, True)
    source = body.define("float", body.name(), False)
    body.fill()
    result = body.results(1)[0][0]
    function = helper.make_function("local", "F", [source], [result], body.nodes, opsets)
    main = Graph(rng, nothing, (), 0)
    main.calls = rng.choice([0, 0, 0.2])
    inputs = [info(main.define(kind, main.name(kind), False), kind) for kind in ("float", "bool")]
    main.fill()
    main.fill()
    outputs = main.results(rng.randint(1, 3))
    model = helper.make_model(main.proto(inputs, outputs), opset_imports=opsets + [helper.make_opsetid("local", 1)],
                              ir_version=8, functions=[function] if main.calls else [])
    onnx.checker.check_model(model, full_check=True)
    return model


def optimise(source, target, pipeline, *options):
    words = [PERILUNE, "opt", source, "-o", target, "-q", *options] + ([] if pipeline is None else ["-p", pipeline])
    run = subprocess.run(words, capture_output=True, text=True)
    assert run.returncode == 0, f"opt fails with {run.returncode}: {run.stderr.strip()[-1000:]}"


def outputs_of(path):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    x, c = (i.name for i in session.get_inputs())
    return [session.run(None, {x: numpy.array([1.5, -2], "f"), c: numpy.array(flag)}) for flag in (False, True)]


def all_names(graph):
    """Names of nodes and of values, of a graph and of those in it."""
    nodes, values, work = [], [], [graph]
    while work:
        g = work.pop()
        values += [v.name for v in g.initializer] + [o for n in g.node for o in n.output if o]
        nodes += [n.name for n in g.node if n.name]
        work += [a.g for n in g.node for a in n.attribute if a.HasField("g")]
    return nodes, values


def check_value_info(graph):
    """Nothing is told of what is not there."""
    names = {v.name for v in graph.initializer} | {o for n in graph.node for o in n.output} | {i.name for i in graph.input}
    for told in graph.value_info:
        assert told.name in names, f"value_info tells of '{told.name}', which is gone"
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                check_value_info(attribute.g)


def check(path, seed):
    rng = random.Random(seed)
    expected = outputs_of(path)
    target = os.path.join(WORK, "after.onnx")
    optimise(path, target, "")
    difference = first_difference(onnx.load(path), onnx.load(target))
    assert difference is None, f"with no pass: {difference}"
    text = os.path.join(WORK, "text.relay")
    optimise(path, text, "")
    pipelines = [None, "text"] + [",".join(rng.choices(PASSES, k=rng.randint(1, 6))) for _ in range(3)]
    for pipeline in pipelines:
        options = rng.choice([(), ("--value-info",), ("--check",)])
        source, words = (text, "") if pipeline == "text" else (path, pipeline)
        optimise(source, target, words, *options)
        try:
            model = onnx.load(target)
            onnx.checker.check_model(model, full_check=True)
            check_value_info(model.graph)
            optimise(target, os.path.join(WORK, "again.onnx"), "")
            after = outputs_of(target)
        except Exception as error:
            raise AssertionError(f"{pipeline}: {error}") from error
        for a, b in zip(sum(expected, []), sum(after, [])):
            assert a.shape == b.shape and numpy.array_equal(a, b, equal_nan=True), f"{pipeline}: {a} became {b}"


def main():
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    os.makedirs(WORK, exist_ok=True)
    failures = skipped = 0
    for seed in range(first, first + MODELS):
        path = os.path.join(WORK, f"{seed}.onnx")
        try:
            onnx.save(make_model(random.Random(seed)), path)
        except onnx.checker.ValidationError as error:
            print(f"seed {seed}: not made: {str(error)[:200]}")
            skipped += 1
            continue
        try:
            check(path, seed)
            os.remove(path)
        except Exception as error:  # each model is one case
            failures += 1
            print(f"FAIL {path}: {str(error)[:1500]}", flush=True)
    print(f"{MODELS - failures - skipped} passed, {failures} failed, {skipped} not made")
    sys.exit(1 if failures or skipped > MODELS // 10 else 0)


if __name__ == "__main__":
    main()
