"""Which function writes which network. Imports numpy and onnx; import it when one is built."""

from __future__ import annotations

from collections.abc import Callable

from pytest_ortbench.models.builders.bert import bert_base, bert_tiny
from pytest_ortbench.models.builders.canary import canary
from pytest_ortbench.models.builders.decoder import decoder
from pytest_ortbench.models.builders.detector import detector_n
from pytest_ortbench.models.builders.graph_writer import GraphWriter
from pytest_ortbench.models.builders.mobilenet import mobilenet_v2
from pytest_ortbench.models.builders.recurrent import lstm_tagger
from pytest_ortbench.models.builders.resnet import resnet50
from pytest_ortbench.models.builders.tabular import gbdt, linear
from pytest_ortbench.models.builders.unet import unet
from pytest_ortbench.models.builders.vit import vit_b16

WRITERS: dict[str, Callable[[GraphWriter], None]] = {
    writer.__name__: writer
    for writer in (
        mobilenet_v2,
        resnet50,
        vit_b16,
        detector_n,
        unet,
        bert_tiny,
        bert_base,
        decoder,
        lstm_tagger,
        gbdt,
        linear,
        canary,
    )
}
