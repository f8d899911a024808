"""The networks that can be built, as plain facts; importing this costs next to nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

#: Tags of networks that are built where they are named, and not for ``builtin:all``.
NAMED_ONLY = frozenset({"canary", "large"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BuilderInfo:
    """One network that can be built.

    Attributes:
        name: As in ``builtin:NAME``.
        writer: Dotted name of the function that writes it; its module imports numpy and onnx.
        version: Goes up whenever the bytes change; results of two versions do not compare.
        digest: SHA-256 of the file that this version builds, hexadecimal.
        parameters: Trainable ones: weights, biases and gains, not running statistics; of trees,
            thresholds and leaf values.
        description: For people, one line.
        tags: Field and task.
        default_dims: Sizes of the symbolic dimensions other than ``batch``; a sum of symbols
            (``past + seq``) follows from its terms.
        workloads: Presets of sizes by name, of a network that is documented to take an empty
            cache; the first one is the default.
        encoder: Name of the network that it listens to; empty for none.
        external: Whether its weights lie in a file beside it; the digest is that of both.
    """

    name: str
    writer: str
    version: int = 1
    digest: str
    parameters: int
    description: str
    tags: tuple[str, ...]
    default_dims: dict[str, int] = field(default_factory=dict)
    workloads: dict[str, dict[str, int]] = field(default_factory=dict)
    external: bool = False
    encoder: str = ""

    @property
    def file_name(self) -> str:
        """Of the file that is built."""
        return f"{self.name}-v{self.version}.onnx"

    @property
    def weights_name(self) -> str:
        """Of the file with its weights; empty where there is none."""
        return f"{self.file_name}.data" if self.external else ""


#: Reading a prompt, and the next token after as many, in the words of onnxruntime-genai's builder.
_GENERATION = {
    "decode": {"sequence_length": 1, "past_sequence_length": 127},
    "prefill": {"sequence_length": 128, "past_sequence_length": 0},
}

#: The first tokens of a text, and the next one after some, for three seconds of sound.
_WRITING = {
    "decode": {"sequence_length": 1, "past_sequence_length": 31, "encoder_sequence_length": 150},
    "prefill": {"sequence_length": 4, "past_sequence_length": 0, "encoder_sequence_length": 150},
}

#: Likewise of a text beside another, in the words of exporters of T5.
_TRANSLATING = {
    workload: {
        "decoder_sequence_length": sizes["sequence_length"],
        "past_decoder_sequence_length": sizes["past_sequence_length"],
        "encoder_sequence_length": 32,
    }
    for workload, sizes in _WRITING.items()
}

#: By name; the order is that of listings.
BUILDERS: dict[str, BuilderInfo] = {
    info.name: info
    for info in (
        BuilderInfo(
            name="mobilenet_v2",
            writer="pytest_ortbench.models.builders.vision.mobilenet_v2",
            digest="0c0a9bf9a7ed25d01e741fcd7bb588b48f8209c0140119bc0c6f7c9e7e4c5488",
            parameters=3_504_872,
            description="MobileNetV2 at 224 x 224, 1,000 classes",
            tags=("vision", "classification"),
        ),
        BuilderInfo(
            name="resnet50",
            writer="pytest_ortbench.models.builders.vision.resnet50",
            digest="45c46935000bf4b3dc18e86bbc52734fbc6b5cfd3efe5cd17df36d744e1e2acb",
            parameters=25_557_032,
            description="ResNet-50 at 224 x 224, 1,000 classes",
            tags=("vision", "classification"),
        ),
        BuilderInfo(
            name="vit_b16",
            writer="pytest_ortbench.models.builders.vision.vit_b16",
            digest="902857a4968ebe5d9a8fe44dd0e120303cd6a54dfa87c18ea37e19b84bd56a09",
            parameters=86_567_656,
            description="ViT-B/16 at 224 x 224, 1,000 classes",
            tags=("vision", "classification", "transformer"),
        ),
        BuilderInfo(
            name="detector_n",
            writer="pytest_ortbench.models.builders.detector.detector_n",
            digest="7130de638975953f2662ee9bc6a9e476e11a3570aa1d84dfba1438756a707618",
            parameters=3_157_184,
            description="One-stage detector of nano size, 80 classes, any multiple of 32 pixels",
            tags=("vision", "detection"),
            default_dims={"height": 640, "width": 640},
        ),
        BuilderInfo(
            name="unet",
            writer="pytest_ortbench.models.builders.vision.unet",
            digest="a4b1e69203928c5fef44221a5cc2d7868123eaed5bbd85c9144d69544e6e48e9",
            parameters=1_942_628,
            description="U-Net of width 16 to 256, 4 classes, any multiple of 16 pixels",
            tags=("vision", "segmentation"),
            default_dims={"height": 256, "width": 256},
        ),
        BuilderInfo(
            name="bert_tiny",
            writer="pytest_ortbench.models.builders.language.bert_tiny",
            digest="483842792724b88e1eaa747f5fdf65f90020acc98ed8a85dff6aba2871f2bb1d",
            parameters=4_385_920,
            description="BERT with 2 layers of width 128, and pooler",
            tags=("text", "encoder", "transformer"),
            default_dims={"seq": 128},
        ),
        BuilderInfo(
            name="bert_base",
            writer="pytest_ortbench.models.builders.language.bert_base",
            digest="d0a447cc1918db113b90cecdd1f92faa07e61741ebc5ad4233ad909ff6532f54",
            parameters=109_482_240,
            description="BERT with 12 layers of width 768, and pooler",
            tags=("text", "encoder", "transformer"),
            default_dims={"seq": 128},
        ),
        BuilderInfo(
            name="decoder",
            writer="pytest_ortbench.models.builders.language.decoder",
            digest="da33bcc3b39d367a6c22c9639ce9a54596572c8639bc004910042f68efb55829",
            parameters=5_518_848,
            description="Causal language model with a key/value cache, one token after 127",
            tags=("text", "generation", "transformer"),
            default_dims={"seq": 1, "past": 127},
            workloads={"decode": {"seq": 1, "past": 127}, "prefill": {"seq": 128, "past": 0}},
        ),
        BuilderInfo(
            name="llm_15m",
            writer="pytest_ortbench.models.builders.generative.llm_15m",
            digest="041f188ecbee03fcd150daaef6fb6059eefb235dcf917a415076c0b2853bf4ea",
            parameters=15_733_632,
            description="Language model in the form of onnxruntime-genai, 6 layers of width 384",
            tags=("text", "generation", "transformer"),
            default_dims=_GENERATION["decode"],
            workloads=_GENERATION,
        ),
        BuilderInfo(
            name="llm_125m",
            writer="pytest_ortbench.models.builders.generative.llm_125m",
            digest="e46f783e87678fafda3f5423067ffec9b72df8710f86abf2a037cb03b17d46c9",
            parameters=124_668_672,
            description="Language model in the form of onnxruntime-genai, 12 layers of width 768",
            tags=("text", "generation", "transformer"),
            default_dims=_GENERATION["decode"],
            workloads=_GENERATION,
        ),
        BuilderInfo(
            name="llm_1b",
            writer="pytest_ortbench.models.builders.generative.llm_1b",
            digest="d420277f204eaa7e4ba4bf59c9b6f8f4b842b8c607760a67c0209bacac0bf8d5",
            parameters=1_100_048_384,
            description="Language model in that form, 22 layers of width 2048; takes 4.4 GB",
            tags=("text", "generation", "transformer", "large"),
            default_dims=_GENERATION["decode"],
            workloads=_GENERATION,
            external=True,
        ),
        BuilderInfo(
            name="llm_long",
            writer="pytest_ortbench.models.builders.generative.llm_long",
            digest="b1f74df9b5b55c0fb1913ef460eb2a5ad5c91f231dcd5f2fe1c4d0ab3e761205",
            parameters=3_802_368,
            description="Language model in that form, LongRoPE: other rotations past 256 tokens",
            tags=("text", "generation", "transformer"),
            default_dims=_GENERATION["decode"],
            workloads=_GENERATION,
        ),
        BuilderInfo(
            name="speech_encoder",
            writer="pytest_ortbench.models.builders.speech.speech_encoder",
            digest="28ad93e73f7331746a6b7b7be994d6a86c1ce75ff94d7268ee31f91ed4962283",
            parameters=2_485_760,
            description="Whisper-like encoder: sound to what the layers of speech_decoder look at",
            tags=("audio", "encoder", "transformer"),
            default_dims={"num_frames": 300},
        ),
        BuilderInfo(
            name="speech_decoder",
            writer="pytest_ortbench.models.builders.speech.speech_decoder",
            digest="150d3e1dd6169ee292a5ba053196947f4d17558e112cb844e9ae7b3173b3c301",
            parameters=4_056_064,
            description="Whisper-like decoder with two caches: of its text, and of speech_encoder",
            tags=("audio", "generation", "transformer"),
            default_dims=_WRITING["decode"],
            workloads=_WRITING,
            encoder="speech_encoder",
        ),
        BuilderInfo(
            name="translation_encoder",
            writer="pytest_ortbench.models.builders.translation.translation_encoder",
            digest="0423778fa3e6e576bf991d9c516f8e83e86b07f59a64bcfeb4664ec438ae74b9",
            parameters=2_743_296,
            description="T5-like encoder: a text to the states that translation_decoder looks at",
            tags=("text", "encoder", "transformer"),
            default_dims={"encoder_sequence_length": 32},
        ),
        BuilderInfo(
            name="translation_decoder",
            writer="pytest_ortbench.models.builders.translation.translation_decoder",
            digest="69c1c8a1bf5d5777ea430075035e299eb633f7e5f48f66d16e58daa2f4018f02",
            parameters=4_319_232,
            description="T5-like decoder with a cache of its text; listens to translation_encoder",
            tags=("text", "generation", "transformer"),
            default_dims=_TRANSLATING["decode"],
            workloads=_TRANSLATING,
            encoder="translation_encoder",
        ),
        BuilderInfo(
            name="lstm_tagger",
            writer="pytest_ortbench.models.builders.language.lstm_tagger",
            digest="1a5cce4ba0d7b7efe56cd6c07a270cf65afbfd2f3d09d4a27be7ce102034c6e9",
            parameters=1_548_561,
            description="Bidirectional LSTM that tags every token with one of 17 parts of speech",
            tags=("text", "tagging", "recurrent"),
            default_dims={"seq": 32},
        ),
        BuilderInfo(
            name="gbdt",
            writer="pytest_ortbench.models.builders.tabular.gbdt",
            digest="3c552c88947659eb89e68f6af27121cef8b1cb19e858f1951752797438850edb",
            parameters=25_400,
            description="200 boosted trees of depth 6 over 32 features, 10 classes",
            tags=("tabular", "classification"),
        ),
        BuilderInfo(
            name="linear",
            writer="pytest_ortbench.models.builders.tabular.linear",
            digest="c8564d47bf462f770c3aa7749ff68bbfc58aa147436b0ee060e6469cb6d08eef",
            parameters=330,
            description="Scaler and linear classifier over 32 features, 10 classes",
            tags=("tabular", "classification"),
        ),
        BuilderInfo(
            name="canary",
            writer="pytest_ortbench.models.builders.vision.canary",
            digest="d1e25ed085a10d724302ac5246fed34e043fec2bffc06c4ad3584d6dfe7eb2f9",
            parameters=187_520,
            description="About 1 ms of convolution and matrix product; tells machines apart",
            tags=("canary",),
        ),
    )
}
