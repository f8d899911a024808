"""How a language model generates: its decoder, what is asked of it, what each request took."""

from __future__ import annotations

from dataclasses import dataclass, field

#: What carries a generation out with an ONNX file: the package's own loop on a session, or
#: onnxruntime-genai.
FILE_ENGINES = ("session", "genai")
#: The function of transformers that does.
GENERATE = "generate"
#: What does in the framework that it was exported from: that function, or the package's own loop on
#: the model's forward pass.
FRAMEWORK_ENGINES = (GENERATE, "forward")
ENGINES = (*FILE_ENGINES, *FRAMEWORK_ENGINES)
#: Tokens that are read at a time to fill the cache before a request.
MOST_AT_ONCE = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheTensor:
    """One tensor of keys or of values that a decoder hands on from token to token.

    Attributes:
        past: Name of the input.
        present: Name of the output that is fed to it for the next token.
        type: ONNX Runtime's spelling of its type.
        shape: Sizes of its axes; 0 at the axes of the batch and of the length, and where nothing
            says how large an axis is.
        batch_axis: Axis of the sequences.
        length_axis: Axis of the tokens.
        is_of_encoder: Whether it holds what an encoder said: the first step of a request fills it,
            and later ones leave it as it is.
        window: Tokens that an operator looks back over where it keeps no more of them and drops the
            earlier ones itself: its buffer is always so long. 0 where all are kept.
    """

    past: str
    present: str
    type: str
    shape: tuple[int, ...]
    batch_axis: int = 0
    length_axis: int = 2
    is_of_encoder: bool = False
    window: int = 0

    @property
    def open_axes(self) -> tuple[int, ...]:
        """Axes whose size nothing says, beside those of the batch and of the length."""
        varying = (self.batch_axis, self.length_axis)
        return tuple(
            axis for axis, size in enumerate(self.shape) if not size and axis not in varying
        )

    def sized(self, batch: int, length: int) -> tuple[int, ...]:
        """Return its shape for a number of sequences and of tokens; a window has a fixed length."""
        sizes = list(self.shape)
        sizes[self.batch_axis], sizes[self.length_axis] = batch, self.window or length
        return tuple(sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFault:
    """Something that is wrong with the ``genai_config.json`` beside a decoder.

    Attributes:
        told: The value, its place, and the rule that it breaks.
        remedy: The next step.
        stops_genai: Whether onnxruntime-genai can't be used with it; otherwise it goes by the
            graph, as our own loop does in any case.
    """

    told: str
    remedy: str = ""
    stops_genai: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """What the inputs and outputs of a model that writes token by token mean.

    Attributes:
        ids: Input of the tokens, ``[batch, tokens]``.
        logits: Output of the scores, ``[batch, tokens or 1, vocabulary]``.
        vocabulary: Number of tokens that there are.
        cache: Tensors of keys and values, empty for a decoder without a cache.
        ids_type: ONNX Runtime's spelling of the type of the tokens.
        mask: Input with 1 for every token of past and present, ``[batch, past + tokens]``; empty
            where there is none.
        positions: Input of the positions of the new tokens, ``[batch, tokens]``; likewise.
        cache_flag: Input that says whether the cache is used; likewise.
        cache_flag_first: Whether that input says the opposite: that it is the first step.
        constants: Further inputs, and the one value that each element of theirs has in every step.
        heard: Further inputs that hold what an encoder said, the same in every step of a request:
            its states, or keys and values that were made of them, and its mask.
        shares_buffers: Whether past and present may be one buffer, as long as the whole context.
        context: The most tokens of past and present; ``None`` where nothing says it.
        context_from: What says it, for people.
        end_tokens: Tokens that end a text; they are never chosen while time is taken.
        folder: Folder whose ``genai_config.json`` names the file; empty where there is none.
        config_faults: What is wrong with a ``genai_config.json`` beside it.
    """

    ids: str
    logits: str
    vocabulary: int
    cache: tuple[CacheTensor, ...] = ()
    ids_type: str = "tensor(int64)"
    mask: str = ""
    positions: str = ""
    cache_flag: str = ""
    cache_flag_first: bool = False
    constants: dict[str, int] = field(default_factory=dict)
    heard: tuple[str, ...] = ()
    shares_buffers: bool = False
    context: int | None = None
    context_from: str = ""
    end_tokens: tuple[int, ...] = ()
    folder: str = ""
    config_faults: tuple[ConfigFault, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether the sizes of its cache are known, so that it can be run."""
        return not any(tensor.open_axes for tensor in self.cache)

    @property
    def window(self) -> int:
        """The longest window of its cache: the least room that a cache must have; 0 without one."""
        return max((tensor.window for tensor in self.cache), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A request as it is asked for: so many tokens after so many.

    Attributes:
        engine: One of :data:`ENGINES`.
        prompt_tokens: Tokens of a sequence that are read at once, drawn anew for every request.
        new_tokens: Tokens of a sequence that are written, the first one included.
        depth: Tokens of a sequence that are in the cache before the prompt.
        sound_s: Seconds of sound that an encoder reads before; ``None`` where it reads none.
    """

    engine: str
    prompt_tokens: int
    new_tokens: int
    depth: int = 0
    sound_s: float | None = None

    @property
    def length(self) -> int:
        """Tokens of a sequence at its end."""
        return self.depth + self.prompt_tokens + self.new_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedRequest:
    """What one request took, in nanoseconds.

    Attributes:
        steps_ns: Time in the model for the first token (reading the prompt), and for each later
            one, in order. Under genai a step includes the choice of its token.
        chosen_ns: Time for choosing the first token, where that is no part of the first step.
        prepared_ns: Time between the text of the request and its first step: template, tokenising,
            making a generator; ``None`` where nothing of that is done.
        encoder_ns: Time in the encoder, before the first step; ``None`` where there is none.
        wall_ns: Time from the ids of the prompt to the last token, everything included.
        prompt_tokens: Tokens of each sequence that were read.
        new_tokens: Tokens of each sequence that were written.
    """

    steps_ns: tuple[int, ...]
    chosen_ns: int = 0
    prepared_ns: int | None = None
    encoder_ns: int | None = None
    wall_ns: int
    prompt_tokens: int
    new_tokens: int


#: Signal to noise ratios of values that do not differ at all, and of those that are no numbers.
EXACT_DB, NOISE_DB = 300.0, -200.0
#: Below the least a file may still be no nearer to itself than so many dB more.
_SLACK_DB = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Consistency:
    """How near scores token by token are to those of one run over all tokens.

    Attributes:
        after: After how many tokens the scores are.
        sqnr_db: Signal to noise ratio after each, of the worst sequence; 300 where there is no
            difference, -200 where there is a value that is no number.
        median_db: Of those that are judged; of the worst sequence; ``None`` where no scores on
            either side are numbers.
        own_db: How near the file is to itself where further tokens follow in one run, likewise;
            ``None`` where nobody had to know, or nothing can be compared.
        least_db: What the median must reach.
        reason: Why nothing was compared; empty otherwise.
    """

    after: tuple[int, ...] = ()
    sqnr_db: tuple[float, ...] = ()
    median_db: float | None = None
    own_db: float | None = None
    least_db: float = 0.0
    reason: str = ""

    @property
    def is_known(self) -> bool:
        """Whether there was something to compare."""
        return self.median_db is not None

    @property
    def is_wrong(self) -> bool:
        """Whether the two differ by more than the file's own rounding makes them."""
        if self.median_db is None or self.median_db >= self.least_db:
            return False
        return self.own_db is None or self.median_db < self.own_db - _SLACK_DB
