"""How soon does a language model answer, and how fast does it write?

Collected for models that write token by token, once for each length of prompt, depth of the cache,
precision, provider and engine:

    pytest llm/ --ort-prompt-tokens=16:512 --ort-new-tokens=64 --ort-depth=0:4096

Copy this file and set your own limits, on the function or in it; ``generate="only"`` leaves out
single inferences of the model:

    @pytest.mark.ortbench(
        models=["llm/model.onnx"],
        generate="only",
        prompt_tokens=[512],
        limits=["ttft <= 500 ms", "tpot <= 50 ms"],
    )
"""


def test_generation(ortbench):
    """Every token took its time: the first one with the prompt, each later one by itself."""
    generation = ortbench.generation()
    assert generation.ttft > 0  # seconds to the first token
    assert generation.tpot > 0  # seconds per token after it; .itl_p50, .itl_p90, .itl_p99 too
    assert generation.decode_rate > 0  # tokens a second of one sequence
