"""Classifiers on tables of features, with the operators of ai.onnx.ml."""

from __future__ import annotations

from pytest_ortbench.models.builders.graph_writer import ML_DOMAIN, GraphWriter

_FEATURES = 32
_CLASSES = 10
_TREES = 200
_DEPTH = 6


def gbdt(writer: GraphWriter) -> None:
    """Features [batch, 32] to label [batch] and probabilities [batch, 10]; 200 complete trees.

    Every tree adds to one class, as boosting libraries grow them.
    """
    features = writer.input("features", "float", ["batch", _FEATURES])
    splits = 2**_DEPTH - 1
    leaves = 2**_DEPTH
    thresholds = writer.draws("threshold", (_TREES, splits))
    chosen = writer.choices("feature", (_TREES, splits), _FEATURES)
    gains = writer.draws("leaf", (_TREES, leaves))
    in_tree = range(splits + leaves)
    trees = range(_TREES)

    def each(split: list[int], leaf: int) -> list[int]:
        """A value for every split and leaf of every tree."""
        return (split + [leaf] * leaves) * _TREES

    writer.nodes(
        "TreeEnsembleClassifier",
        features,
        names=("label", "probabilities"),
        domain=ML_DOMAIN,
        classlabels_int64s=list(range(_CLASSES)),
        nodes_treeids=[tree for tree in trees for _ in in_tree],
        nodes_nodeids=[node for _ in trees for node in in_tree],
        nodes_modes=(["BRANCH_LEQ"] * splits + ["LEAF"] * leaves) * _TREES,
        nodes_featureids=[
            feature for tree in trees for feature in [*chosen[tree].tolist(), *([0] * leaves)]
        ],
        # Within ±2, as the features' values have deviation 1.
        nodes_values=[
            draw / 2.0**14
            for tree in trees
            for draw in [*thresholds[tree].tolist(), *([0] * leaves)]
        ],
        nodes_truenodeids=each([2 * node + 1 for node in range(splits)], 0),
        nodes_falsenodeids=each([2 * node + 2 for node in range(splits)], 0),
        nodes_missing_value_tracks_true=each([0] * splits, 0),
        class_treeids=[tree for tree in trees for _ in range(leaves)],
        class_nodeids=list(range(splits, splits + leaves)) * _TREES,
        class_ids=[tree % _CLASSES for tree in trees for _ in range(leaves)],
        class_weights=[draw / 2.0**16 for tree in trees for draw in gains[tree].tolist()],
        post_transform="SOFTMAX",
    )
    _declare_outputs(writer)


def linear(writer: GraphWriter) -> None:
    """Features [batch, 32], scaled, to label [batch] and probabilities [batch, 10]."""
    features = writer.input("features", "float", ["batch", _FEATURES])
    centred = writer.node(
        "Scaler",
        features,
        domain=ML_DOMAIN,
        offset=[draw / 2.0**19 for draw in writer.draws("offset", (_FEATURES,)).tolist()],
        scale=[1.0 + draw / 2.0**19 for draw in writer.draws("scale", (_FEATURES,)).tolist()],
    )
    weights = writer.draws("weight", (_CLASSES * _FEATURES,)).tolist()
    writer.nodes(
        "LinearClassifier",
        centred,
        names=("label", "probabilities"),
        domain=ML_DOMAIN,
        classlabels_ints=list(range(_CLASSES)),
        coefficients=[draw / 2.0**16 for draw in weights],
        intercepts=[draw / 2.0**19 for draw in writer.draws("bias", (_CLASSES,)).tolist()],
        multi_class=0,
        post_transform="SOFTMAX",
    )
    _declare_outputs(writer)


def _declare_outputs(writer: GraphWriter) -> None:
    writer.output("label", "int64", ["batch"])
    writer.output("probabilities", "float", ["batch", _CLASSES])
