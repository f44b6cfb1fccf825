"""Runs the operators of ai.onnx.ml on random inputs and compares with onnxruntime.

    classical.py [SEED [ROUNDS [NAME]]]"""
import sys

from onnx import TensorProto, helper
from single_node import Call, flag, floats, maybe, np, run, small_shape

CASES = []
POSTS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]
TEXTS = ["a", "b", "cc", "d", "e"]


def case(make):
    CASES.append(make)
    return make


def ml(name, inputs, attributes, outputs=1, version=3, names=None):
    return Call(name, inputs, attributes, outputs, "ai.onnx.ml", names, version)


def numbers(rng, *shape):
    return (rng.standard_normal(shape) * 3).astype(rng.choice([np.float32, np.float32, np.float64, np.int64, np.int32]))


def listed(rng, *shape):
    return floats(rng, *shape).ravel().tolist()


def features(rng):
    return int(rng.integers(1, 6)), int(rng.integers(1, 6))


# ------------------------------------------------------------------------------------------------------- features


@case
def scaler(rng):
    rows, columns = features(rng)
    n = [columns, columns if flag(rng) else 1]
    return ml("Scaler", [numbers(rng, rows, columns)], {"offset": listed(rng, n[1]), "scale": listed(rng, n[1])})


@case
def normalizer(rng):
    return ml("Normalizer", [numbers(rng, *features(rng))], {"norm": str(rng.choice(["MAX", "L1", "L2"]))})


@case
def imputer(rng):
    rows, columns = features(rng)
    n = columns if flag(rng) else 1
    if flag(rng):
        x = rng.integers(0, 3, (rows, columns)).astype(np.int64)
        return ml("Imputer", [x], {"imputed_value_int64s": list(range(10, 10 + n)), "replaced_value_int64": 1})
    old = float(rng.choice([float("nan"), 1.0]))
    x = rng.choice([1.0, 2.0, float("nan")], (rows, columns)).astype(np.float32)
    return ml("Imputer", [x], {"imputed_value_floats": listed(rng, n), "replaced_value_float": old})


@case
def binarizer(rng):
    return ml("Binarizer", [floats(rng, *small_shape(rng))], {"threshold": 0.2})


@case
def feature_vectorizer(rng):
    rows, n = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    sizes = [int(i) for i in rng.integers(1, 4, n)]
    dtype = rng.choice([np.float32, np.int64])
    return ml("FeatureVectorizer", [(floats(rng, rows, size) * 5).astype(dtype) for size in sizes],
              {"inputdimensions": sizes})


@case
def array_feature_extractor(rng):
    shape = small_shape(rng, 1, 3)
    x = numbers(rng, *shape)
    return ml("ArrayFeatureExtractor", [x, rng.integers(0, shape[-1], (int(rng.integers(1, 4)),)).astype(np.int64)], {})


# ----------------------------------------------------------------------------------------------------- categories


@case
def one_hot_encoder(rng):
    shape = small_shape(rng, 1, 2)
    if flag(rng):
        return ml("OneHotEncoder", [rng.choice(TEXTS, shape).astype(object)], {"cats_strings": TEXTS[:3]})
    x = rng.integers(0, 5, shape).astype(rng.choice([np.int64, np.int32, np.float32]))
    return ml("OneHotEncoder", [x], {"cats_int64s": [3, 0, 2]})


@case
def label_encoder(rng):
    shape = small_shape(rng, 1, 2)
    kinds = [("int64s", [3, 0, 2], rng.integers(0, 5, shape).astype(np.int64)),
             ("strings", TEXTS[:3], rng.choice(TEXTS, shape).astype(object)),
             ("floats", [0.5, float("nan"), 2.0], rng.choice([0.5, float("nan"), 2.0, 3.0], shape).astype(np.float32))]
    keys, values = rng.permutation(3)[:2]
    if flag(rng):
        keys = values
    return ml("LabelEncoder", [kinds[keys][2]],
              {"keys_" + kinds[keys][0]: kinds[keys][1], "values_" + kinds[values][0]: kinds[values][1],
               "default_string": "?", "default_int64": -7, "default_float": 0.25}, version=4)


@case
def label_encoder_1(rng):
    shape = small_shape(rng, 1, 2)
    x = rng.choice(TEXTS, shape).astype(object) if flag(rng) else rng.integers(0, 5, shape).astype(np.int64)
    return ml("LabelEncoder", [x], {"classes_strings": TEXTS[:3], "default_string": "?", "default_int64": -7}, version=1)


@case
def label_encoder_tensors(rng):
    x = rng.integers(0, 5, small_shape(rng, 1, 2)).astype(rng.choice([np.int64, np.int32, np.int16]))
    dtype = helper.np_dtype_to_tensor_dtype(x.dtype)
    if flag(rng):
        values, default = (TensorProto.STRING, [3], ["x", "y", "z"]), (TensorProto.STRING, [1], ["?"])
    else:
        values, default = (TensorProto.DOUBLE, [3], [0.5, 1.5, 2.5]), (TensorProto.DOUBLE, [1], [-1.0])
        x, dtype = x.astype(np.int64), TensorProto.INT64
    return ml("LabelEncoder", [x], {"keys_tensor": helper.make_tensor("k", dtype, [3], [3, 0, 2]),
                                    "values_tensor": helper.make_tensor("v", *values),
                                    "default_tensor": helper.make_tensor("d", *default)}, version=4)


@case
def category_mapper(rng):
    shape = small_shape(rng, 1, 2)
    x = rng.choice(TEXTS, shape).astype(object) if flag(rng) else rng.integers(0, 5, shape).astype(np.int64)
    return ml("CategoryMapper", [x], {"cats_strings": TEXTS[:3], "cats_int64s": [3, 0, 2], "default_string": "?"})


# --------------------------------------------------------------------------------------------------------- linear


def labels(rng, n, ints="classlabels_ints"):
    return {"classlabels_strings": TEXTS[:n]} if flag(rng) else {ints: [int(i) for i in rng.permutation(9)[:n]]}


@case
def linear_regressor(rng):
    rows, columns = features(rng)
    n = int(rng.integers(1, 4))
    return ml("LinearRegressor", [floats(rng, rows, columns)],
              {"coefficients": listed(rng, n, columns), "intercepts": listed(rng, n), "targets": n,
               "post_transform": str(rng.choice(POSTS))})


@case
def linear_classifier(rng):
    rows, columns = features(rng)
    n = int(rng.integers(1, 5))
    return ml("LinearClassifier", [numbers(rng, rows, columns)],
              {"coefficients": listed(rng, n, columns), "intercepts": listed(rng, n),
               "post_transform": str(rng.choice(POSTS)), **labels(rng, max(n, 2))}, 2)


# -------------------------------------------------------------------------------------------------------- vectors


def svm_kernel(rng):
    return {"kernel_type": str(rng.choice(["LINEAR", "POLY", "RBF", "SIGMOID"])), "kernel_params": [0.5, 0.1, 2.0]}


@case
def svm_regressor(rng):
    rows, columns = features(rng)
    n = int(rng.integers(1, 6))
    attributes = {**svm_kernel(rng), "rho": listed(rng, 1), "one_class": flag(rng)}
    if flag(rng):
        return ml("SVMRegressor", [floats(rng, rows, columns)],
                  {**attributes, "coefficients": listed(rng, n), "support_vectors": listed(rng, n, columns), "n_supports": n})
    return ml("SVMRegressor", [floats(rng, rows, columns)],
              {**attributes, "kernel_type": "LINEAR", "coefficients": listed(rng, columns)})


@case
def svm_classifier(rng):
    rows, columns = features(rng)
    n = int(rng.integers(2, 5))
    sizes = [int(i) for i in rng.integers(1, 4, n)]
    pairs = n * (n - 1) // 2
    attributes = {**svm_kernel(rng), "vectors_per_class": sizes, "support_vectors": listed(rng, sum(sizes), columns),
                  "coefficients": listed(rng, n - 1, sum(sizes)), "rho": listed(rng, pairs), **labels(rng, n),
                  "post_transform": str(rng.choice(POSTS))}
    if flag(rng):
        attributes.update(prob_a=(-np.abs(floats(rng, pairs))).tolist(), prob_b=listed(rng, pairs))
    return ml("SVMClassifier", [floats(rng, rows, columns)], attributes, 2)


@case
def linear_svm_classifier(rng):
    rows, columns = features(rng)
    n = int(rng.integers(3, 5))
    return ml("SVMClassifier", [floats(rng, rows, columns)],
              {"coefficients": listed(rng, n, columns), "rho": listed(rng, 1), **labels(rng, n),
               "kernel_params": [0.5, 0.1, 2.0], "post_transform": str(rng.choice(POSTS))}, 2)


# ---------------------------------------------------------------------------------------------------------- trees

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def grow(rng, columns, trees):
    """Nodes of complete trees of random depth, and (tree, node) of their leaves."""
    nodes = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
                             "missing_value_tracks_true")}
    leaves = []
    for tree in range(trees):
        inner = (1 << int(rng.integers(0, 4))) - 1
        for i in range(2 * inner + 1):
            leaf = i >= inner
            row = (tree, i, int(rng.integers(0, columns)), 0.0 if leaf else float(np.float32(rng.integers(-2, 3))),
                   "LEAF" if leaf else str(rng.choice(MODES)), 0 if leaf else 2 * i + 1, 0 if leaf else 2 * i + 2,
                   flag(rng))
            for key, value in zip(nodes, row):
                nodes[key].append(value)
            if leaf:
                leaves.append((tree, i))
    return {"nodes_" + k: v for k, v in nodes.items()}, leaves


def rows_of(rng, rows, columns):
    x = rng.integers(-3, 4, (rows, columns)).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    return x


@case
def tree_ensemble_regressor(rng):
    rows, columns = features(rng)
    n, based = int(rng.integers(1, 4)), flag(rng)
    nodes, leaves = grow(rng, columns, int(rng.integers(1, 6)))
    # A target without weight is 0 in onnxruntime, whatever its base value is.
    weights = [(t, i, int(k)) for t, i in leaves
               for k in rng.permutation(n)[:n if based else int(rng.integers(1, n + 1))]]
    attributes = {**nodes, "n_targets": n, "target_treeids": [w[0] for w in weights],
                  "target_nodeids": [w[1] for w in weights], "target_ids": [w[2] for w in weights],
                  "target_weights": listed(rng, len(weights)), "post_transform": str(rng.choice(POSTS)),
                  "aggregate_function": str(rng.choice(["SUM", "AVERAGE", "MIN", "MAX"]))}
    if based:
        attributes["base_values"] = listed(rng, n)
    return ml("TreeEnsembleRegressor", [rows_of(rng, rows, columns)], attributes)


@case
def tree_ensemble_classifier(rng):
    rows, columns = features(rng)
    n = int(rng.integers(2, 5))
    nodes, leaves = grow(rng, columns, int(rng.integers(1, 6)))
    only = flag(rng)
    weights = [(t, i, k) for t, i in leaves for k in (range(n) if n > 2 else [only])]
    values = floats(rng, len(weights))
    attributes = {**nodes, "class_treeids": [w[0] for w in weights], "class_nodeids": [w[1] for w in weights],
                  "class_ids": [w[2] for w in weights],
                  "class_weights": (np.abs(values) if flag(rng) else values).tolist(),
                  "post_transform": str(rng.choice(POSTS)), **labels(rng, n, "classlabels_int64s")}
    if flag(rng):
        attributes["base_values"] = listed(rng, n)
    return ml("TreeEnsembleClassifier", [rows_of(rng, rows, columns)], attributes, 2)


@case
def tree_ensemble_two_classes(rng):
    """Two classes with scores of their own: onnxruntime's label is 1 whenever the second score is positive, so only
    scores are compared."""
    rows, columns = features(rng)
    nodes, leaves = grow(rng, columns, int(rng.integers(1, 6)))
    weights = [(t, i, k) for t, i in leaves for k in range(2)]
    return ml("TreeEnsembleClassifier", [rows_of(rng, rows, columns)],
              {**nodes, "class_treeids": [w[0] for w in weights], "class_nodeids": [w[1] for w in weights],
               "class_ids": [w[2] for w in weights], "class_weights": listed(rng, len(weights)),
               "post_transform": str(rng.choice(POSTS)), "classlabels_int64s": [4, 7]}, names=["_label", "scores"])


@case
def tree_ensemble(rng):
    rows, columns = features(rng)
    dtype, n = rng.choice([np.float32, np.float64]), int(rng.integers(1, 4))
    kind = TensorProto.FLOAT if dtype == np.float32 else TensorProto.DOUBLE
    trees, inner = int(rng.integers(1, 5)), 3
    branches = trees * inner
    leaves = trees * 4
    modes = [int(i) for i in rng.integers(0, 7, branches)]
    members = []
    for mode in modes:
        if mode == 6:
            members += [float(i) for i in rng.permutation(5)[:2] - 2] + [float("nan")]
    yes, no = [], []
    for t in range(trees):
        yes += [t * inner + 1, t * 4, t * 4 + 2]
        no += [t * inner + 2, t * 4 + 1, t * 4 + 3]
    attributes = {  # onnxruntime exchanges the numbers of SOFTMAX and LOGISTIC
        "n_targets": n, "aggregate_function": int(rng.integers(0, 4)), "post_transform": int(rng.choice([0, 3])),
        "tree_roots": [t * inner for t in range(trees)], "nodes_featureids": [int(i) for i in rng.integers(0, columns, branches)],
        "nodes_modes": helper.make_tensor("m", TensorProto.UINT8, [branches], modes),
        "nodes_splits": helper.make_tensor("s", kind, [branches], [float(i) for i in rng.integers(-2, 3, branches)]),
        "nodes_truenodeids": yes, "nodes_falsenodeids": no, "nodes_trueleafs": [0, 1, 1] * trees,
        "nodes_falseleafs": [0, 1, 1] * trees, "leaf_targetids": [int(i) for i in rng.integers(0, n, leaves)],
        "leaf_weights": helper.make_tensor("w", kind, [leaves], listed(rng, leaves))}
    if members:
        attributes["membership_values"] = helper.make_tensor("v", kind, [len(members)], members)
    return ml("TreeEnsemble", [rng.integers(-3, 4, (rows, columns)).astype(dtype)], attributes, version=5)


if __name__ == "__main__":
    sys.exit(run(CASES, "classical"))
