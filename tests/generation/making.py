"""Makes folders with onnxruntime-genai's own builder, from random small models of transformers.

Runs in an environment with torch, transformers and onnxruntime-genai, as a script: in the current
folder it makes ``llama-fp32``, ``llama-int4``, ``phi3-fp32`` and ``phi3-int4``.
"""

from __future__ import annotations

import subprocess
import sys

#: The context of the Phi-3 is four times as long as its first set of rotations serves. Requests of
#: 16 tokens end before the switch, those of 512 begin behind it: one that crosses it is inaccurate.
SWITCH = 256
VOCABULARY = 1000
HIDDEN, HEADS = 256, 8


def main() -> None:
    """Train a tokenizer, draw the weights, and call the builder once a folder."""
    import torch  # heavy, and only where this runs
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import (
        LlamaConfig,
        LlamaForCausalLM,
        Phi3Config,
        Phi3ForCausalLM,
        PreTrainedTokenizerFast,
    )

    torch.manual_seed(0)
    bytes_of = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer, tokenizer.decoder = bytes_of, decoders.ByteLevel()
    text = [str(torch.__doc__), str(torch.nn.Module.__doc__), str(torch.Tensor.__doc__)]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<unk>", "<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(text, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )
    sizes = {
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_hidden_layers": 2,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS // 2,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 2,
    }
    half = HIDDEN // HEADS // 2
    scaling = {
        "type": "longrope",
        "rope_type": "longrope",
        "short_factor": [1.0] * half,
        "long_factor": [1.5] * half,
    }
    drawn = {
        "llama": LlamaForCausalLM(LlamaConfig(**sizes, max_position_embeddings=2048)),
        "phi3": Phi3ForCausalLM(
            Phi3Config(
                **sizes,
                max_position_embeddings=4 * SWITCH,
                original_max_position_embeddings=SWITCH,
                rope_scaling=scaling,
            )
        ),
    }
    for name, model in drawn.items():
        model.save_pretrained(f"{name}-source")
        fast.save_pretrained(f"{name}-source")
        for precision in ("fp32", "int4"):
            command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-e", "cpu"]
            command += ["-i", f"{name}-source", "-o", f"{name}-{precision}", "-p", precision]
            subprocess.run([*command, "-c", "cache"], check=True)


if __name__ == "__main__":
    main()
