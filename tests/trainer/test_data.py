"""Samples are the same for every arrangement of ranks, and lines look like wikitext's."""

import statistics
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.trainer.launching import RECIPE, tiny_config
from trainer import tokenizer
from trainer.config import DataConfig, ModelConfig, TrainConfig
from trainer.corpus import embedded_texts
from trainer.data import Data, load_data
from trainer.feed import IGNORED, MicroBatches
from trainer.flops import parameters
from trainer.tokenizer import embedded_text

pytestmark = pytest.mark.torch

LINES = DataConfig(source="embedded", feed="lines")


def _load(config: TrainConfig, cache: Path) -> Data:
    return load_data(config, cache, None)


def _step_of_all_ranks(config: TrainConfig, data: Data, step: int) -> Counter[tuple[int, ...]]:
    accumulation = config.recipe.accumulation
    rows: Counter[tuple[int, ...]] = Counter()
    for rank in range(config.ranks):
        feed = MicroBatches(config, data.samples, rank)
        for turn in range(accumulation):
            rows.update(tuple(row.tolist()) for row in feed[step * accumulation + turn].inputs["input_ids"])
    return rows


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return embedded_texts()


def test_the_embedded_text_is_real_english_of_two_megabytes(texts: list[str]) -> None:
    assert len(texts) > 7_000
    assert 1_500_000 < sum(map(len, texts)) < 4_000_000
    words = Counter(" ".join(texts).lower().split())
    assert [word for word, _ in words.most_common(2)] == ["the", "a"]


def test_lines_have_wikitext_s_proportions(cache: Path) -> None:
    data = _load(tiny_config(data=LINES, sequence_length=512), cache)
    lengths = data.samples.lengths.tolist()
    assert len(lengths) > 10_000
    assert lengths.count(1) / len(lengths) == pytest.approx(1 / 3, abs=0.005)
    assert statistics.median(lengths) == 12
    assert statistics.mean(lengths) == pytest.approx(70, abs=2)


def test_lines_are_cut_off_at_the_sequence_length_and_begin_with_the_boundary(cache: Path) -> None:
    data = _load(tiny_config(data=LINES, sequence_length=32), cache)
    assert data.samples.lengths.max() == 32
    boundary = embedded_text(1000, cache).encoder.boundary
    assert set(data.samples.ids[data.samples.starts].tolist()) == {boundary}


def test_packed_blocks_hold_the_whole_text_in_its_order(cache: Path, texts: list[str]) -> None:
    config = tiny_config()
    data = _load(config, cache)
    assert set(data.samples.lengths.tolist()) == {32}
    encoder = embedded_text(1000, cache).encoder
    start = encoder.tokenizer.decode(data.samples.ids[:60].tolist(), skip_special_tokens=False)
    assert texts[0].startswith(start[:100])
    assert data.facts.texts == len(texts)
    assert data.facts.tokens == len(data.samples.ids) == data.facts.samples * 32


@pytest.mark.parametrize("feed", ["packed", "lines"])
def test_every_split_of_a_step_takes_the_same_samples(cache: Path, feed: str) -> None:
    config = tiny_config(data=DataConfig.model_validate({"source": "embedded", "feed": feed}), steps=3)
    data = _load(config, cache)
    seen = []
    for pods, ranks, micro, accumulation in [(1, 2, 2, 2), (2, 1, 2, 2), (1, 1, 8, 1), (4, 2, 1, 1), (1, 2, 1, 4)]:
        recipe = RECIPE.model_copy(update={"micro_batch": micro, "accumulation": accumulation})
        split = config.model_copy(update={"pods": pods, "ranks_per_pod": ranks, "recipe": recipe})
        assert split.sequences_per_step == 8
        chosen = MicroBatches(split, data.samples, 0).samples_of_step(1)
        rows = _step_of_all_ranks(split, data, 1)
        assert sum(rows.values()) == 8
        seen.append((chosen.tolist(), sum(sum(1 for t in row if t) * n for row, n in rows.items())))
    assert all(each == seen[0] for each in seen)


def test_an_epoch_visits_every_sample_once_and_the_next_in_another_order(cache: Path) -> None:
    samples = _load(tiny_config(data=LINES), cache).samples
    first, second = samples.order(0), samples.order(1)
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(len(samples)))
    assert first.tolist() != second.tolist()


def test_a_step_may_span_two_epochs(tmp_path: Path, cache: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("one\ntwo\nthree\n")
    config = tiny_config(data=DataConfig(source=f"file:{file}", feed="lines"), steps=3)
    samples = _load(config, cache).samples
    assert len(samples) == 3
    chosen = np.concatenate([MicroBatches(config, samples, 0).samples_of_step(s) for s in range(3)])
    assert chosen.tolist() == np.concatenate([samples.order(e) for e in range(8)]).tolist()


def test_the_hash_is_of_content_and_order(cache: Path) -> None:
    same = _load(tiny_config(), cache).facts
    assert _load(tiny_config(pods=2, ranks_per_pod=1), cache).facts == same
    assert _load(tiny_config(seed=8), cache).facts.sha256 != same.sha256
    assert _load(tiny_config(sequence_length=64), cache).facts.sha256 != same.sha256
    assert _load(tiny_config(seed=8), cache).facts.tokenizer_sha256 == same.tokenizer_sha256


def test_the_cache_gives_what_was_made_and_survives_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer, "embedded_texts", lambda: ["some words", "and some more words"])
    made = embedded_text(300, tmp_path)
    (file,) = tmp_path.iterdir()
    cached = embedded_text(300, tmp_path)
    assert np.array_equal(cached.ids, made.ids)
    assert cached.encoder.sha256 == made.encoder.sha256
    file.write_bytes(file.read_bytes()[:1000])
    assert np.array_equal(embedded_text(300, tmp_path).ids, made.ids)
    assert [path.suffix for path in tmp_path.iterdir()] == [".npz"]


def test_padding_is_counted_apart_and_never_a_target(cache: Path) -> None:
    recipe = RECIPE.model_copy(update={"micro_batch": 8, "accumulation": 1})
    config = tiny_config(data=LINES, recipe=recipe, sequence_length=512)
    data = _load(config, cache)
    batch = MicroBatches(config, data.samples, 0)[0]
    ids, labels, mask = (batch.inputs[name] for name in ("input_ids", "labels", "attention_mask"))
    assert batch.real_tokens + batch.padded_tokens == ids.numel()
    assert batch.real_tokens == int(mask.sum())
    assert torch.equal(labels == IGNORED, mask == 0)
    lengths = data.samples.lengths[MicroBatches(config, data.samples, 0).samples_of_step(0)]
    assert batch.targets_of_step == sum(length - 1 for length in lengths)
    assert ids.shape[1] == max(lengths[:8])


def test_files_of_a_folder_are_read_by_name(tmp_path: Path, cache: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "b.txt").write_text("second\n\nfourth")
    (folder / "a.txt").write_text("first")
    config = tiny_config(data=DataConfig(source=f"file:{folder}", feed="lines"), sequence_length=64)
    data = _load(config, cache)
    encoder = embedded_text(1000, cache).encoder
    texts = [encoder.tokenizer.decode(data.samples[i][1:].tolist()) for i in range(4)]
    assert texts == ["first", "second", "", "fourth"]
    assert data.samples.lengths[2] == 1


def test_a_hugging_face_data_set_is_read_from_its_text_column(tmp_path: Path, cache: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "train.jsonl").write_text('{"text": "one two"}\n{"text": "three"}\n')
    config = tiny_config(data=DataConfig(source=f"hf:{folder}", feed="lines"))
    data = _load(config, cache)
    assert data.facts.texts == 2
    (folder / "train.jsonl").unlink()
    assert _load(config, cache).facts == data.facts, "a pod without a route reads what was fetched before"


def test_a_source_is_read_only_as_far_as_the_run_needs(tmp_path: Path, cache: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("word\n" * 10_000)
    config = tiny_config(data=DataConfig(source=f"file:{file}", feed="lines"), steps=3)
    assert _load(config, cache).facts.texts == 3 * config.sequences_per_step


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("wikitext", "data.source: 'wikitext' is no source; use embedded, hf:<id>"),
        ("file:{folder}/none", "none holds no file; give a text file or a folder of them"),
        ("hf:{folder}/none", "none can't be read: "),
        ("hf:{folder}/other", "has no column `text` of strings"),
        ("file:{folder}/latin.txt", "latin.txt is not UTF-8 text"),
        ("file:{folder}/empty.txt", "not one sample of 32 tokens; give more text"),
    ],
)
def test_a_source_that_can_t_be_used_is_named(tmp_path: Path, cache: Path, source: str, sentence: str) -> None:
    (tmp_path / "latin.txt").write_bytes("é".encode("latin-1"))
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "train.jsonl").write_text('{"words": "one"}\n')
    config = tiny_config(data=DataConfig(source=source.format(folder=tmp_path), feed="packed"))
    with pytest.raises(ValueError, match=r"data\.source: ") as caught:
        _load(config, cache)
    assert sentence in str(caught.value)


def test_a_vocabulary_too_small_for_bytes_is_refused(cache: Path) -> None:
    small = tiny_config().model.architecture.model_copy(update={"vocabulary_size": 200})
    assert parameters(small) > 0
    config = tiny_config(model=ModelConfig(name="small", architecture=small, tokenizer=None))
    with pytest.raises(ValueError, match="vocabulary_size: 200 can't hold the 257 tokens"):
        _load(config, cache)
