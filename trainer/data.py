"""What is trained on: token samples in a fixed order, the same for every arrangement of ranks."""

import hashlib
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from trainer.cache import Arrays, array_text, read_arrays, text_array, write_arrays
from trainer.config import TrainConfig
from trainer.record import DataFacts
from trainer.texts import read_texts
from trainer.tokenizer import Encoder, TokenIds, embedded_text, pretrained_encoder

Indices = npt.NDArray[np.int64]

BLANK_LINES, HEADINGS, PARAGRAPHS = 32, (4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12), 47
"""96 lines as wikitext-2 has them: a third blank, so many headings that 12 tokens are the median."""

PARAGRAPH_MEDIAN, PARAGRAPH_SIGMA = 109.0, 0.7
"""Log-normal paragraph lengths that bring the mean of all lines to 70 tokens."""

ENCODED_AT_ONCE = 1_000

FAR_AWAY = ("hf:", "s3://")
"""Sources whose samples are kept."""


@dataclass(frozen=True)
class Samples:
    """Samples as stretches of one array of token ids, and the order in which an epoch visits them."""

    ids: TokenIds
    starts: Indices
    lengths: Indices
    seed: int

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> TokenIds:
        return self.ids[self.starts[index] : self.starts[index] + self.lengths[index]]

    def order(self, epoch: int) -> Indices:
        """The samples of one epoch, shuffled by seed and epoch alone."""
        return np.random.default_rng([self.seed, epoch]).permutation(len(self))

    def sha256(self) -> str:
        """Of the token ids of the first epoch in the order in which they are fed."""
        digest = hashlib.sha256()
        for index in self.order(0):
            digest.update(self.lengths[index].tobytes())
            digest.update(self[index].tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class Data:
    """Samples, and what the record says about them."""

    samples: Samples
    facts: DataFacts


def load_data(config: TrainConfig, cache: Path, token: str | None) -> Data:
    """Read, encode and cut the config's data; a ValueError names the source and what is wrong with it."""
    samples, read, tokenizer_sha256 = _kept(config, cache) or _made(config, cache, token)
    largest = int(samples.ids.max())
    if largest >= config.model.architecture.vocabulary_size:
        raise ValueError(
            f"model.tokenizer: its token {largest} doesn't fit the model's vocabulary of "
            f"{config.model.architecture.vocabulary_size}; use the model's own tokenizer"
        )
    facts = DataFacts(
        sha256=samples.sha256(),
        tokenizer_sha256=tokenizer_sha256,
        texts=read,
        tokens=int(samples.lengths.sum()),
        samples=len(samples),
    )
    return Data(samples, facts)


def line_lengths() -> Iterator[int]:
    """Tokens of endless lines, boundary included: blocks of 96 with wikitext-2's proportions, shuffled.

    Those proportions (a third blank, median 12, mean about 70) were counted with Llama-3's tokenizer.
    """
    normal = NormalDist(float(np.log(PARAGRAPH_MEDIAN)), PARAGRAPH_SIGMA)
    paragraphs = [round(np.exp(normal.inv_cdf((i + 0.5) / PARAGRAPHS))) for i in range(PARAGRAPHS)]
    block = [1] * BLANK_LINES + [*HEADINGS] + paragraphs
    shuffler = random.Random(0)
    while True:
        shuffler.shuffle(block)
        yield from block


def _kept(config: TrainConfig, cache: Path) -> tuple[Samples, int, str] | None:
    """What an earlier process made of a source far away; a pod of the lab can't reach it itself.

    Such a source counts as the same under the same name; an emptied cache reads it anew.
    """
    kept = read_arrays(_cache_file(config, cache))
    if kept is None:
        return None
    ids, starts, lengths = (kept[name] for name in ("ids", "starts", "lengths"))
    samples = Samples(ids.astype(np.int32), starts.astype(np.int64), lengths.astype(np.int64), config.seed)
    return samples, int(kept["texts"].astype(np.int64)[0]), array_text(kept["tokenizer_sha256"])


def _made(config: TrainConfig, cache: Path, token: str | None) -> tuple[Samples, int, str]:
    encoder, texts = _encoded_texts(config, cache, token)
    cut = _packed if config.data.feed == "packed" else _lines
    samples, read = cut(config, encoder, texts, _samples_needed(config))
    if not len(samples):
        raise ValueError(
            f"data.source: {config.data.source} holds {read} texts and not one sample of "
            f"{config.sequence_length} tokens; give more text or a shorter sequence_length"
        )
    if config.data.source.startswith(FAR_AWAY):
        arrays: Arrays = {"ids": samples.ids, "starts": samples.starts, "lengths": samples.lengths}
        facts: Arrays = {"texts": np.array([read]), "tokenizer_sha256": text_array(encoder.sha256)}
        write_arrays(_cache_file(config, cache), arrays | facts)
    return samples, read, encoder.sha256


def _cache_file(config: TrainConfig, cache: Path) -> Path:
    model = config.model
    made_of = (config.data, model.tokenizer, model.architecture.vocabulary_size, config.sequence_length)
    key = hashlib.sha256(repr((made_of, _samples_needed(config))).encode()).hexdigest()[:16]
    return cache / f"samples-{key}.npz"


def _samples_needed(config: TrainConfig) -> int:
    return config.steps * config.sequences_per_step


def _encoded_texts(config: TrainConfig, cache: Path, token: str | None) -> tuple[Encoder, Iterator[TokenIds]]:
    """Embedded text fed by lines is cut into lines like wikitext's; other sources come as they are."""
    own, source = config.model.tokenizer, config.data.source
    if source == "embedded" or own is None:
        embedded = embedded_text(config.model.architecture.vocabulary_size, cache)
        if source == "embedded":
            lines = config.data.feed == "lines"
            texts = _wikitext_like(embedded.ids) if lines else embedded.texts()
            return embedded.encoder, iter(texts)
        encoder = embedded.encoder
    else:
        encoder = pretrained_encoder(own, token)
    read = read_texts(source, token)
    lines_or_texts = chain.from_iterable(map(str.splitlines, read)) if config.data.feed == "lines" else read
    return encoder, _encode(encoder, lines_or_texts)


def _wikitext_like(ids: TokenIds) -> Iterator[TokenIds]:
    at = 0
    for length in line_lengths():
        if at + length > len(ids):
            return
        yield ids[at : at + length - 1]
        at += length - 1


def _encode(encoder: Encoder, texts: Iterable[str]) -> Iterator[TokenIds]:
    remaining = iter(texts)
    while some := list(islice(remaining, ENCODED_AT_ONCE)):
        yield from encoder.encode(some)


def _packed(config: TrainConfig, encoder: Encoder, texts: Iterator[TokenIds], needed: int) -> tuple[Samples, int]:
    """Texts joined by the boundary and cut in blocks; attention across texts is accepted."""
    length, boundary = config.sequence_length, np.array([encoder.boundary], dtype=np.int32)
    parts: list[TokenIds] = []
    tokens = read = 0
    for text in texts:
        parts += [text, boundary]
        tokens, read = tokens + len(text) + 1, read + 1
        if tokens >= needed * length and config.data.source != "embedded":
            break
    blocks = tokens // length
    ids = np.concatenate(parts)[: blocks * length] if parts else np.empty(0, dtype=np.int32)
    starts = np.arange(blocks, dtype=np.int64) * length
    return Samples(ids, starts, np.full(blocks, length, dtype=np.int64), config.seed), read


def _lines(config: TrainConfig, encoder: Encoder, texts: Iterator[TokenIds], needed: int) -> tuple[Samples, int]:
    """One line a sample behind the boundary token, cut off at sequence_length; a blank line is one token."""
    boundary = np.array([encoder.boundary], dtype=np.int32)
    parts: list[TokenIds] = []
    lengths: list[int] = []
    for line in texts if config.data.source == "embedded" else islice(texts, needed):
        kept = line[: config.sequence_length - 1]
        parts += [boundary, kept]
        lengths.append(len(kept) + 1)
    ids = np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)
    sizes = np.array(lengths, dtype=np.int64)
    return Samples(ids, np.cumsum(sizes) - sizes, sizes, config.seed), len(lengths)
