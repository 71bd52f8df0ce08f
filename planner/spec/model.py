"""What a model card says: the shape of a decoder-only language model.

Dimensions only. What they cost (parameters, FLOPs, bytes) is counted in :mod:`planner.engine`.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from planner.spec.card import Card, Month, Name, Sourced, SourceKey

NumberFormat = Literal["bf16", "fp8", "int8", "int4", "mxfp4", "nvfp4"]
"""A number format of weights. ``bf16`` stands for every 16-bit float."""
KvFormat = Literal["bf16", "fp8"]
"""A number format of the KV cache."""


class Indexer(Card):
    """The lightning indexer of DeepSeek sparse attention: picks the keys that attention may read."""

    heads: PositiveInt
    """Index heads."""
    head_dim: PositiveInt
    """Width of an index head."""
    top_k: PositiveInt
    """Keys that attention reads for each query."""


class GroupedAttention(Card):
    """Softmax attention with its own key/value heads: MHA (kv_heads = heads), GQA, MQA (kv_heads = 1)."""

    kind: Literal["gqa"]
    heads: PositiveInt
    """Query heads."""
    kv_heads: PositiveInt
    """Key/value heads."""
    head_dim: PositiveInt
    """Width of a query/key head, as given by the checkpoint (not hidden / heads)."""
    value_dim: PositiveInt | None = None
    """Width of a value head where it differs from ``head_dim``."""
    window: PositiveInt | None = None
    """Tokens that a query can look back on (sliding window or chunk); all of them where absent."""
    query_gate: bool = False
    """Whether the query projection is doubled by an output gate (Qwen3-Next, Qwen3.5)."""
    qkv_bias: bool = False
    """Whether the query, key and value projections have biases."""
    output_bias: bool = False
    """Whether the output projection has a bias."""
    qk_norm: Literal["none", "head", "projection"] = "none"
    """Norm weights of queries and keys: one per head dimension, or one per projected dimension."""
    sinks: bool = False
    """Whether each head has a learnt sink logit (gpt-oss)."""

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        if self.heads % self.kv_heads:
            msg = f"heads {self.heads} is not a multiple of kv_heads {self.kv_heads}, for example kv_heads: 8"
            raise ValueError(msg)
        return self


class LatentAttention(Card):
    """Multi-head latent attention (DeepSeek-V2): one compressed key/value vector per token, not sharded by TP."""

    kind: Literal["mla"]
    heads: PositiveInt
    """Query heads."""
    query_rank: PositiveInt | None = None
    """Rank of the query compression; absent where queries are projected directly."""
    kv_rank: PositiveInt
    """Width of the latent key/value vector."""
    nope_dim: PositiveInt
    """Width of a head's position-free part."""
    rope_dim: PositiveInt
    """Width of a head's rotary part, shared by all heads in the cache."""
    value_dim: PositiveInt
    """Width of a value head."""
    indexer: Indexer | None = None
    """Sparse-attention indexer, if any."""


class LinearAttention(Card):
    """Gated delta-rule attention (Qwen3-Next, Qwen3.5): a state of fixed size per sequence, no KV cache."""

    kind: Literal["linear"]
    key_heads: PositiveInt
    value_heads: PositiveInt
    key_dim: PositiveInt
    """Width of a key head."""
    value_dim: PositiveInt
    """Width of a value head."""
    convolution: PositiveInt
    """Width of the causal convolution."""
    state_bits: PositiveInt = 32
    """Bits of an element of the recurrent state."""


Attention = Annotated[GroupedAttention | LatentAttention | LinearAttention, Field(discriminator="kind")]


class DenseFfn(Card):
    """A dense feed-forward block."""

    kind: Literal["dense"]
    intermediate: PositiveInt
    """Inner width."""
    gated: bool = True
    """Whether there are three matrices (gate, up, down) or two."""
    bias: bool = False


class MoeFfn(Card):
    """A mixture of experts, with or without shared experts."""

    kind: Literal["moe"]
    experts: PositiveInt
    """Routed experts."""
    top_k: PositiveInt
    """Experts that a token visits."""
    intermediate: PositiveInt
    """Inner width of one routed expert."""
    shared_intermediate: int = Field(default=0, ge=0)
    """Inner width of all shared experts together; 0 where there are none."""
    shared_gate: bool = False
    """Whether the shared expert has a scalar gate (Qwen)."""
    router_bias: bool = False
    """Whether the router has one bias (or score correction) per expert."""
    bias: bool = False
    """Whether the experts' matrices have biases (gpt-oss)."""

    @model_validator(mode="after")
    def _top_k_fits(self) -> Self:
        if self.top_k > self.experts:
            msg = f"top_k {self.top_k} is more than experts {self.experts}, for example top_k: {self.experts}"
            raise ValueError(msg)
        return self


Ffn = Annotated[DenseFfn | MoeFfn, Field(discriminator="kind")]


class LayerGroup(Card):
    """Layers that are alike. Their order in the stack does not matter to a count."""

    count: PositiveInt
    attention: Attention
    ffn: Ffn


class Norms(Card):
    """Normalisation weights around the blocks."""

    per_layer: PositiveInt = 2
    """Norms of hidden width in a layer."""
    bias: bool = False
    """Whether a norm has a bias beside its weight (LayerNorm)."""
    extra: int = Field(default=1, ge=0)
    """Norms of hidden width outside the layers (final norm, embedding norm)."""


class Checkpoint(Sourced):
    """A published checkpoint of the model in one number format."""

    block: PositiveInt | None = None
    """Side of a quantisation block that a shard must not cut; absent for per-tensor and per-channel scales."""
    covers: Literal["linear", "experts"] = "linear"
    """What is quantised: all linear layers but embedding, head and router; or the routed experts alone."""
    repository: str | None = None
    """Name on the Hugging Face hub."""


class Official(Sourced):
    """The published parameter count that the card is held against."""

    total: PositiveInt
    """Parameters of the served language model: no MTP, no vision tower, tied heads once."""


class Stretch(Sourced):
    """A context longer than the checkpoint's own, by rescaled positions."""

    context: PositiveInt
    """Longest context that the platform serves [tokens]."""
    method: str
    """How positions are rescaled, for example ``YaRN, factor 4``."""


class ModelCard(Card):
    """A decoder-only language model, as served: no MTP heads, no vision tower."""

    name: Name
    """Equals the file's stem."""
    title: str
    """Name for people."""
    repositories: tuple[str, ...] = ()
    """Names on the Hugging Face hub that mean this shape, the main one first."""
    released: Month | None = None
    """Month of its release, where the model has been succeeded."""
    succeeded: Month | None = None
    """Month in which a model of its size took its place, where one did: measurements that state no engine version are
    taken as from the middle of the time between."""
    sources: dict[str, str] = Field(min_length=1)
    """Documents that the card's numbers were read from."""
    dimensions: SourceKey
    """Key into ``sources``: where the dimensions below were read."""
    parameters: Official
    checkpoints: dict[NumberFormat, Checkpoint] = Field(min_length=1)
    """Published number formats; the first is the checkpoint's own."""
    max_context: PositiveInt
    """Longest context of the checkpoint [tokens]."""
    stretched: Stretch | None = None
    """Longer context by rescaled positions, if the platform serves one."""
    hidden: PositiveInt
    """Model width."""
    vocabulary: PositiveInt
    """Rows of the embedding table."""
    tied_embeddings: bool = False
    """Whether the output head is the embedding table."""
    learned_positions: int = Field(default=0, ge=0)
    """Rows of a learnt position table; 0 for rotary or ALiBi positions."""
    parallel_block: bool = False
    """Whether attention and feed-forward read the same input, so that one all-reduce serves both (PaLM, Falcon)."""
    norms: Norms = Norms()
    layers: tuple[LayerGroup, ...] = Field(min_length=1)

    @property
    def native_format(self) -> NumberFormat:
        """Number format of the checkpoint itself."""
        return next(iter(self.checkpoints))

    @property
    def sparse(self) -> bool:
        """Whether any layer has routed experts."""
        return any(group.ffn.kind == "moe" for group in self.layers)

    @property
    def depth(self) -> int:
        """Layers in the stack."""
        return sum(group.count for group in self.layers)

    @property
    def context(self) -> int:
        """Longest context served [tokens]."""
        return self.stretched.context if self.stretched else self.max_context
