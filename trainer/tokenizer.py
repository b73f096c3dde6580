"""Texts to token ids: by the model's own tokenizer, or by one trained on the embedded text and cached."""

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import tokenizers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from trainer.cache import array_text, read_arrays, text_array, write_arrays
from trainer.corpus import embedded_texts

TokenIds = npt.NDArray[np.int32]

BOUNDARY = "<eos>"
LARGEST_VOCABULARY = 32_768
"""Beyond this, 2 MB of text hold hardly a pair that is worth a token of its own."""

SMALLEST_VOCABULARY = 257
"""256 bytes and the boundary."""

BOUNDARY_TOKENS = ("<|begin_of_text|>", "<s>", "<bos>", "<|endoftext|>", "</s>", "<eos>")
"""What tokenizers call the token that begins a text, else the one that ends it, in order of preference."""


@dataclass(frozen=True)
class Encoder:
    """A tokenizer, and the token that begins a line and separates packed texts."""

    tokenizer: Tokenizer
    boundary: int

    @property
    def sha256(self) -> str:
        """Of the tokenizer's whole definition."""
        return hashlib.sha256(self.tokenizer.to_str().encode()).hexdigest()

    def encode(self, texts: Sequence[str]) -> list[TokenIds]:
        """One array of ids a text, without boundary."""
        encodings = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [np.array(encoding.ids, dtype=np.int32) for encoding in encodings]


@dataclass(frozen=True)
class EmbeddedText:
    """The embedded texts, encoded: flat ids and each text's length."""

    encoder: Encoder
    ids: TokenIds
    lengths: npt.NDArray[np.int64]

    def texts(self) -> list[TokenIds]:
        """One array of ids a text."""
        return np.split(self.ids, np.cumsum(self.lengths)[:-1])


def pretrained_encoder(identifier: str, token: str | None) -> Encoder:
    """The tokenizer of a Hugging Face model; a ValueError names what can't be fetched or used."""
    try:
        tokenizer = Tokenizer.from_pretrained(identifier, token=token)
    except Exception as error:  # the library raises bare Exception for every failure of the hub
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"model.tokenizer: {identifier} can't be fetched ({reason}); a gated one needs HF_TOKEN"
        ) from error
    known = (tokenizer.token_to_id(name) for name in BOUNDARY_TOKENS)
    boundary = next((number for number in known if number is not None), None)
    if boundary is None:
        raise ValueError(f"model.tokenizer: {identifier} has none of the boundary tokens {', '.join(BOUNDARY_TOKENS)}")
    return Encoder(tokenizer, boundary)


def embedded_text(vocabulary_size: int, cache: Path) -> EmbeddedText:
    """The embedded texts and the tokenizer trained on them, from the cache where it has them."""
    if vocabulary_size < SMALLEST_VOCABULARY:
        raise ValueError(
            f"model.architecture.vocabulary_size: {vocabulary_size} can't hold the {SMALLEST_VOCABULARY} "
            "tokens (bytes and boundary) that the embedded text needs at least"
        )
    size = min(vocabulary_size, LARGEST_VOCABULARY)
    key = hashlib.sha256(f"{sys.version} {tokenizers.__version__} {size}".encode()).hexdigest()[:16]
    path = cache / f"embedded-{key}.npz"
    if (kept := read_arrays(path)) is not None:
        encoder = _with_boundary(Tokenizer.from_str(array_text(kept["tokenizer"])))
        return EmbeddedText(encoder, kept["ids"].astype(np.int32), kept["lengths"].astype(np.int64))
    made = _make(size)
    definition = text_array(made.encoder.tokenizer.to_str())
    write_arrays(path, {"tokenizer": definition, "ids": made.ids, "lengths": made.lengths})
    return made


def _make(vocabulary_size: int) -> EmbeddedText:
    texts = embedded_texts()
    encoder = _train(texts, vocabulary_size)
    ids = encoder.encode(texts)
    return EmbeddedText(encoder, np.concatenate(ids), np.array([len(each) for each in ids], dtype=np.int64))


def _train(texts: Sequence[str], vocabulary_size: int) -> Encoder:
    """Byte-level BPE: every text can be encoded, and the training is deterministic."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=[BOUNDARY],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return _with_boundary(tokenizer)


def _with_boundary(tokenizer: Tokenizer) -> Encoder:
    boundary = tokenizer.token_to_id(BOUNDARY)
    assert boundary is not None, "the boundary is a special token of every tokenizer trained here"
    return Encoder(tokenizer, boundary)
