"""Corpora: memory, runs that are killed, a cluster, and how many pairs a second are aligned beside other aligners.

`python benchmarks/corpus.py [NAME ...]` prints JSON lines, of these parts or of all:

- `killed`: Europarl aligned with the model in the box, killed five times at random moments and resumed;
- `memory`: the peak memory of `align` with the model of recipes/tiny.yaml on more and more generated pairs;
- `speed`: pairs a second with the model in the box, one of OPUS-MT's size and one of BERT-base's, beside SimAlign and
  awesome-align on the same BERT and the bare passes that they need;
- `translation`: sentences a second with a model of OPUS-MT's size, beside CTranslate2;
- `causal`: seconds a text with a Llama of 135 million parameters, beside Interpreto, Inseq and the bare pass;
- `ray`: workers on a cluster against worker processes and one process.

All but `memory` and `causal` read Europarl. Peers that are not installed are left out; so as not to touch what is
installed, put them into a folder of their own and name it in PYTHONPATH:
`pip install --no-deps --target peers simalign awesome-align interpreto ctranslate2`, and what they lack.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from aligners import SIGHTLINE, write_texts
from methods import bare_pass
from opus import in_process, marian, seconds
from tokenizers import Tokenizer
from tokenizers.models import WordLevel, WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer, Whitespace
from tokenizers.trainers import WordPieceTrainer
from transformers import (
    BertConfig,
    BertModel,
    BertTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

import sightline
from sightline.data.corpora import data_path, read_tab_separated
from sightline.data.language import GeneratedLanguage, LanguageSettings
from sightline.training import train

RECIPE = Path(__file__).parents[1] / "recipes" / "tiny.yaml"
PEAK = "int(next(l for l in open('/proc/self/status') if l.startswith('VmHWM')).split()[1]) / 1024"
LAYER = 8
"""Of BERT, from which both peers take their vectors by default."""
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PROMPT, CONTINUATION = 60, 30

Pairs = list[tuple[str, str]]

warnings.filterwarnings("ignore")


def europarl(count: int) -> Pairs:
    """Read the first pairs of Europarl."""
    return list(islice(read_tab_separated(data_path("europarl-en-es/pairs.tsv.gz")), count))


def run(command: list[str]) -> float:
    """Run a command and return its wall time."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


# A run that is killed


def killed(count: int = 30_000, kills: int = 5) -> dict[str, float]:
    """Align Europarl at one go; then kill it at random moments, resume it, and compare the bytes."""
    rng = random.Random(0)
    # By what is done, since time is no measure where something else takes the cores.
    moments = sorted(rng.sample(range(int(0.9 * count)), kills))
    with TemporaryDirectory(prefix="sightline-killed-") as folder:
        texts = write_texts(Path(folder, "text"), europarl(count))
        whole, out = Path(folder, "whole"), Path(folder, "out")
        at_one_go = run([*SIGHTLINE, "align", *texts, "-o", str(whole)])
        command = [*SIGHTLINE, "align", *texts, "--resume", "-o", str(out)]
        rows: dict[str, float] = {}
        start = time.perf_counter()
        for number, moment in enumerate(moments, 1):
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            while _rows_done(out) < moment:
                if process.poll() is not None:
                    raise SystemExit(f"It ended with {process.returncode} before it was killed {kills} times.")
                time.sleep(0.05)
            time.sleep(rng.uniform(0, 2))  # anywhere between two records
            process.send_signal(signal.SIGKILL)
            process.wait()
            rows[f"pairs done at kill {number}"] = _rows_done(out)
        run(command)
        resumed = time.perf_counter() - start
        return {
            "pairs": count,
            "kills": kills,
            **rows,
            "at one go, s": at_one_go,
            "killed and resumed, s": resumed,
            "bytes": whole.stat().st_size,
            "same bytes": whole.read_bytes() == out.read_bytes(),
        }


def _rows_done(out: Path) -> int:
    record = out.with_name(out.name + ".partial.json")
    return json.loads(record.read_text())["rows"] if record.exists() else 0


# Memory


def memory(sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000)) -> dict[str, Any]:
    """Measure the peak memory of `sightline align` in one process, on more and more pairs."""
    found: dict[str, Any] = {}
    with TemporaryDirectory(prefix="sightline-memory-") as folder:
        train(RECIPE, output=Path(folder, "model"), quiet=True)
        for size in sizes:
            texts = _generate(Path(folder, str(size)), size)
            arguments = ["align", "-m", str(Path(folder, "model")), *texts, "--workers", "1", "-o", f"{folder}/out"]
            found[f"{size:,}"] = in_process(
                f"import json, sys, time; sys.argv[1:] = {arguments!r}; from sightline.cli import main\n"
                "start = time.perf_counter()\n"
                "try: main()\n"
                "except SystemExit as end: assert not end.code, end.code\n"
                f"print(json.dumps({{'peak, MB': {PEAK}, 'seconds': time.perf_counter() - start}}))"
            )
            with Path(folder, "out").open() as lines:
                assert sum(1 for _ in lines) == size
    peaks = [one["peak, MB"] for one in found.values()]
    largest = found[f"{sizes[-1]:,}"]
    return {**found, "largest / smallest": max(peaks) / min(peaks), "pairs/s": sizes[-1] / largest["seconds"]}


def _generate(stem: Path, count: int) -> list[str]:
    """Write pairs of the language of the recipe, as they come."""
    paths = [stem.with_suffix(ending) for ending in (".source", ".target")]
    stream = GeneratedLanguage(LanguageSettings(stems=60, clauses=1, seed=1)).stream("train")
    with paths[0].open("w", encoding="utf-8") as sources, paths[1].open("w", encoding="utf-8") as targets:
        for pair in islice(stream, count):
            sources.write(" ".join(pair.source_words) + "\n")
            targets.write(" ".join(pair.target_words) + "\n")
    return list(map(str, paths))


# Speed


def speed(count: int = 512, peers_count: int = 64) -> dict[str, Any]:
    """Measure pairs a second on the same texts, models loaded beforehand, text to links."""
    pairs = europarl(count)
    sources, targets = map(list, zip(*pairs, strict=True))
    few = sources[:peers_count], targets[:peers_count]
    found: dict[str, Any] = {"pairs": count, "pairs of peers and BERT": peers_count}
    norms = {"method": "norms", "layer": 4, "reading": "input", "extraction": "argmax"}
    box, opus = sightline.load(), marian(sources + targets)
    found["box, pairs/s"] = count / _align_seconds(box, sources, targets)
    found["box, norms, pairs/s"] = count / _align_seconds(box, sources, targets, method="norms")
    found["adapter / norms"] = found["box, pairs/s"] / found["box, norms, pairs/s"]
    found["box, one way, pairs/s"] = count / _align_seconds(box, sources, targets, reverse=False)
    found["box, bare pass, pairs/s"] = count / seconds(bare_pass(box, sources, targets), repeats=2)
    found["OPUS-MT's size, pairs/s"] = count / _align_seconds(opus, sources, targets, **norms)
    found["OPUS-MT's size, bare pass, pairs/s"] = count / seconds(bare_pass(opus, sources, targets), repeats=2)
    with TemporaryDirectory(prefix="sightline-bert-") as folder:
        bert = _bert(Path(folder), sources + targets)
        similarity = {"method": "similarity", "layer": LAYER, "extraction": "mutual"}
        found["BERT-base, pairs/s"] = peers_count / _align_seconds(bert, *few, **similarity)
        found["BERT-base, bare passes, pairs/s"] = peers_count / seconds(_bert_passes(bert, *few, batch=32), repeats=2)
        found["BERT-base, bare passes one by one, pairs/s"] = peers_count / seconds(
            _bert_passes(bert, *few, batch=1), repeats=2
        )
        bert.module.bfloat16()
        found["BERT-base in bfloat16, pairs/s"] = peers_count / _align_seconds(bert, *few, **similarity)
        for name, prepare in (("SimAlign", _simalign), ("awesome-align", _awesome_align)):
            try:
                align = prepare(Path(folder), *few)
            except ImportError:
                continue
            found[f"{name}, pairs/s"] = peers_count / seconds(align, repeats=2)
            found[f"BERT-base / {name}"] = found["BERT-base, pairs/s"] / found[f"{name}, pairs/s"]
            found[f"BERT-base in bfloat16 / {name}"] = (
                found["BERT-base in bfloat16, pairs/s"] / found[f"{name}, pairs/s"]
            )
            found[f"OPUS-MT's size / {name}"] = found["OPUS-MT's size, pairs/s"] / found[f"{name}, pairs/s"]
    found["OPUS-MT's size, time / bare pass"] = (
        found["OPUS-MT's size, bare pass, pairs/s"] / found["OPUS-MT's size, pairs/s"]
    )
    found["BERT-base, time / bare passes"] = found["BERT-base, bare passes, pairs/s"] / found["BERT-base, pairs/s"]
    return found


def _align_seconds(model: Any, sources: list[str], targets: list[str], **options: Any) -> float:
    sightline.align(model, sources[:50], targets[:50], **options)  # checks on first use are not what is measured
    return seconds(lambda: sightline.align(model, sources, targets, **options), repeats=2)


def _bert(folder: Path, texts: list[str]) -> Any:
    """Build a BERT of the base shape with random weights, and word pieces of the texts; save both for the peers."""
    pieces = Tokenizer(WordPiece(unk_token="[UNK]"))
    pieces.normalizer, pieces.pre_tokenizer = BertNormalizer(lowercase=False), BertPreTokenizer()
    pieces.train_from_iterator(texts, WordPieceTrainer(vocab_size=30_000, special_tokens=SPECIAL, show_progress=False))
    vocabulary = pieces.get_vocab()
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in sorted(vocabulary, key=vocabulary.__getitem__)))
    tokenizer = BertTokenizer(vocab=vocabulary, do_lower_case=False)
    torch.manual_seed(0)
    # The vocabulary of multilingual BERT; only a few of its rows are looked up.
    model = BertModel(BertConfig(vocab_size=119_547), add_pooling_layer=False).eval()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return sightline.load(model, tokenizer)


def _bert_passes(model: Any, sources: list[str], targets: list[str], batch: int) -> Callable[[], None]:
    """Return the passes of both sides through the layers below the vectors, tokenised beforehand."""
    texts = sorted(sources + targets, key=len)
    batches = [
        model.tokenizer(texts[i : i + batch], padding=True, truncation=True, max_length=512, return_tensors="pt")
        for i in range(0, len(texts), batch)
    ]
    module = BertModel(BertConfig(vocab_size=119_547, num_hidden_layers=LAYER), add_pooling_layer=False).eval()

    @torch.no_grad()
    def run() -> None:
        for inputs in batches:
            module(**inputs)

    return run


def _simalign(folder: Path, sources: list[str], targets: list[str]) -> Callable[[], Any]:
    from simalign import SentenceAligner

    # The quickest of its ways to match.
    aligner = SentenceAligner(model=str(folder), token_type="bpe", matching_methods="a", layer=LAYER)
    return lambda: [aligner.get_word_aligns(s.split(), t.split()) for s, t in zip(sources, targets, strict=True)]


def _awesome_align(folder: Path, sources: list[str], targets: list[str]) -> Callable[[], Any]:
    from awesome_align.configuration_bert import BertConfig as TheirConfig
    from awesome_align.modeling import BertForMaskedLM
    from awesome_align.run_align import word_align
    from awesome_align.tokenization_bert import BertTokenizer as TheirTokenizer

    text = folder / "pairs"
    text.write_text("".join(f"{s} ||| {t}\n" for s, t in zip(sources, targets, strict=True)))
    tokenizer = TheirTokenizer(str(folder / "vocab.txt"), do_lower_case=False, max_len=512)
    from awesome_align import modeling

    modeling.PAD_ID, modeling.CLS_ID, modeling.SEP_ID = (SPECIAL.index(one) for one in ("[PAD]", "[CLS]", "[SEP]"))
    model = BertForMaskedLM(TheirConfig(vocab_size_or_config_json_file=119_547)).eval()
    settings = Namespace(
        data_file=str(text), output_file=str(folder / "links"), output_prob_file=None, output_word_file=None,
        num_workers=0, batch_size=32, device=torch.device("cpu"), align_layer=LAYER, extraction="softmax",
        softmax_threshold=0.001,
    )  # fmt: skip

    def align() -> None:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            word_align(settings, model, tokenizer)

    return align


# Translation


def translation(count: int = 64, pieces: int = 32) -> dict[str, Any]:
    """Translate greedily into so many pieces a sentence (random weights never end one) beside CTranslate2."""
    sources = [source for source, _ in europarl(count)]
    model = marian(sources)
    limits = {"min_new_tokens": pieces, "max_new_tokens": pieces, "num_beams": 1}
    found: dict[str, Any] = {"sentences": count, "pieces of each translation": pieces}
    sightline.translate(model, sources[:2], **limits)  # checks on first use are not what is measured
    found["sightline translate, sentences/s"] = count / seconds(
        lambda: sightline.translate(model, sources, **limits), repeats=2
    )
    with suppress(ImportError), TemporaryDirectory(prefix="sightline-ct2-") as folder:
        from ctranslate2 import Translator
        from ctranslate2.converters import TransformersConverter

        model.module.save_pretrained(f"{folder}/model")
        model.tokenizer.save_pretrained(f"{folder}/model")
        TransformersConverter(f"{folder}/model").convert(f"{folder}/converted")
        for kind in ("float32", "int8"):
            translator = Translator(f"{folder}/converted", compute_type=kind, intra_threads=torch.get_num_threads())

            def translate(translator: Any = translator) -> None:
                ids = model.tokenizer(sources)["input_ids"]
                translator.translate_batch(
                    [model.tokenizer.convert_ids_to_tokens(one) for one in ids], beam_size=1, max_batch_size=32,
                    min_decoding_length=pieces, max_decoding_length=pieces,
                )  # fmt: skip

            found[f"CTranslate2 in {kind}, sentences/s"] = count / seconds(translate, repeats=2)
    return found


# Causal models


def causal(texts: int = 3) -> dict[str, Any]:
    """Measure seconds a text with a Llama of the shape of SmolLM-135M, one text at a time."""
    model = _llama()
    draw = random.Random(0)
    words = [f"w{i}" for i in range(1000)]
    pairs = [
        (" ".join(draw.choices(words, k=PROMPT)), " ".join(draw.choices(words, k=CONTINUATION))) for _ in range(texts)
    ]
    example = model.encode(*pairs[0])
    assert len(example.outputs) in (CONTINUATION, CONTINUATION + 1)
    ids = model.tokenizer(" ".join(pairs[0]), return_tensors="pt")
    found: dict[str, Any] = {"texts": texts, "prompt": PROMPT, "continuation": CONTINUATION}
    with torch.no_grad():
        found["bare pass, s"] = seconds(lambda: model.module(**ids, use_cache=False), repeats=5)
    for method in ("attention", "saliency", "erasure"):
        sightline.explain(model, *pairs[0], method=method)  # checks on first use are not what is measured
        repeats = 3 if method == "attention" else 1
        whole = seconds(lambda method=method: [sightline.explain(model, *one, method=method) for one in pairs], repeats)
        found[f"{method}, s"] = whole / texts
    found["attention / bare pass"] = found["attention, s"] / found["bare pass, s"]
    with suppress(ImportError):
        import inseq

        for method in ("attention", "saliency"):
            peer = inseq.load_model(model.module, method, tokenizer=model.tokenizer)
            whole = seconds(
                lambda peer=peer: [
                    peer.attribute(one[0], " ".join(one), show_progress=False, batch_size=1) for one in pairs
                ],
                repeats=1,
            )
            found[f"Inseq, {method}, s"] = whole / texts
            found[f"{method} / Inseq"] = found[f"{method}, s"] / found[f"Inseq, {method}, s"]
        model.module.set_attn_implementation("sdpa")
    with suppress(ImportError):
        from interpreto import Granularity, Occlusion, Saliency

        for method, explainer in (("saliency", Saliency), ("erasure", Occlusion)):
            theirs = explainer(model.module, model.tokenizer, batch_size=8, granularity=Granularity.TOKEN)
            whole = seconds(lambda theirs=theirs: [theirs(*one) for one in pairs], repeats=1)
            found[f"Interpreto, {method}, s"] = whole / texts
            found[f"{method} / Interpreto"] = found[f"{method}, s"] / found[f"Interpreto, {method}, s"]
    return found


def _llama() -> Any:
    names = ["<unk>", "<s>", "</s>", *(f"w{i}" for i in range(49_152 - 3))]
    words = Tokenizer(WordLevel({name: i for i, name in enumerate(names)}, unk_token="<unk>"))
    words.pre_tokenizer = Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(names), hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
        num_key_value_heads=3, tie_word_embeddings=True, bos_token_id=1, eos_token_id=2, pad_token_id=2,
    )  # fmt: skip
    return sightline.load(LlamaForCausalLM(config).eval(), tokenizer)


# A cluster


def ray(count: int = 8 * 1024, few: int = 2 * 1024) -> dict[str, Any]:
    """Measure pairs a second of one process, processes and a cluster on this machine; the start does not count."""
    ways = {
        "one process": ["--workers", "1"],
        "2 processes": ["--workers", "2"],
        "Ray, 1 worker": ["--engine", "ray", "--workers", "1"],
        "Ray, 2 workers": ["--engine", "ray", "--workers", "2"],
    }
    found: dict[str, Any] = {"pairs": count}
    with TemporaryDirectory(prefix="sightline-ray-") as folder:
        pairs = europarl(count)
        texts, small = write_texts(Path(folder, "text"), pairs), write_texts(Path(folder, "few"), pairs[:few])
        outputs = set()
        for name, options in ways.items():
            out = Path(folder, name)
            begun = run([*SIGHTLINE, "align", *small, *options, "-o", str(out)])
            whole = run([*SIGHTLINE, "align", *texts, *options, "-o", str(out)])
            found[f"{name}, s"] = whole
            found[f"{name}, pairs/s"] = (count - few) / (whole - begun)
            outputs.add(out.read_bytes())
    found["same bytes"] = len(outputs) == 1
    for name in ("2 processes", "Ray, 1 worker", "Ray, 2 workers"):
        found[f"{name} / one process"] = found[f"{name}, pairs/s"] / found["one process, pairs/s"]
    found["Ray, efficiency of 2 workers"] = found["Ray, 2 workers, pairs/s"] / found["Ray, 1 worker, pairs/s"] / 2
    return found


BENCHMARKS: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "killed": ("align, killed and resumed", killed),
    "memory": ("align, peak memory", memory),
    "speed": ("align, beside other aligners", speed),
    "translation": ("translate, beside CTranslate2", translation),
    "causal": ("causal models", causal),
    "ray": ("align on a cluster", ray),
}


def measure(names: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run some benchmarks, or all, one after the other."""
    for name in names or BENCHMARKS:
        title, benchmark = BENCHMARKS[name]
        yield title, benchmark()


if __name__ == "__main__":
    for title, figures in measure(sys.argv[1:]):
        print(json.dumps({"benchmark": title, **figures}), flush=True)
