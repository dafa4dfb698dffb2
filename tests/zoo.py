"""One zoo of tiny models with random weights and real tokenizer classes, built here without any download."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
import torch
import transformers as tf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import sightline
from sightline.models.classifier import ClassifierSettings, build_classifier
from sightline.models.conv import ConvSettings, build_conv
from sightline.models.loaded import LoadedModel
from sightline.models.lstm import LstmSettings, build_lstm

SOURCES = [
    "The cat sleeps on the mat.",
    "A small dog sees the cat and the bird.",
    "Yes.",
    "Members of the committee's board weren't informed, however.",
    "The bird that the dog sees sings a song for the members of the board and the cat.",
]
TARGETS = [
    "El gato duerme en la alfombra.",
    "Un perro pequeño ve al gato y al pájaro.",
    "Sí.",
    "Sin embargo, los miembros de la junta no fueron informados.",
    "El pájaro que ve el perro canta una canción para los miembros de la junta y el gato.",
]
CORPUS = (SOURCES + TARGETS) * 4
VOCABULARY = 160
WIDTH, HEADS, LAYERS = 16, 4, 2


def _trained(model: Any, pre_tokenizer: Any, trainer: Any) -> dict[str, Any]:
    """Train a tokenizer and give the parts that transformers' classes are built from."""
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(CORPUS, trainer)
    return json.loads(tokenizer.to_str())["model"]


@cache  # a trainer breaks ties by chance: a second vocabulary would be another
def _unigram(*specials: str) -> list[tuple[str, float]]:
    trained = _trained(
        models.Unigram(),
        pre_tokenizers.Metaspace(),
        trainers.UnigramTrainer(
            vocab_size=VOCABULARY, special_tokens=list(specials), unk_token="<unk>", show_progress=False
        ),
    )
    # The trainer's sums, and with them the order of rare pieces, differ a little from run to run.
    pieces = sorted((-round(score, 3), piece) for piece, score in trained["vocab"] if piece not in specials)
    return [(special, 0.0) for special in specials] + [(piece, -cost) for cost, piece in pieces]


@cache
def _byte_level(*specials: str) -> dict[str, Any]:
    trained = _trained(
        models.BPE(),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        trainers.BpeTrainer(
            vocab_size=320,
            special_tokens=list(specials),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return {"vocab": trained["vocab"], "merges": [tuple(merge) for merge in trained["merges"]]}


@cache
def _metaspace_bpe(*specials: str) -> dict[str, Any]:
    trained = _trained(
        models.BPE(unk_token="<unk>"),
        pre_tokenizers.Metaspace(),
        trainers.BpeTrainer(vocab_size=VOCABULARY + 256, special_tokens=list(specials), show_progress=False),
    )
    return {"vocab": trained["vocab"], "merges": [tuple(merge) for merge in trained["merges"]]}


@cache
def _word_piece() -> dict[str, int]:
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trained = _trained(
        models.WordPiece(unk_token="[UNK]"),
        pre_tokenizers.BertPreTokenizer(),
        trainers.WordPieceTrainer(vocab_size=VOCABULARY, special_tokens=list(specials), show_progress=False),
    )
    return trained["vocab"]


@cache
def _sentencepiece_folder() -> Path:
    """Train a SentencePiece model and write the files that Marian's and M2M100's tokenizers read."""
    folder = Path(tempfile.mkdtemp(prefix="sightline-zoo-"))
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS),
        model_prefix=str(folder / "source"),
        vocab_size=100,
        hard_vocab_limit=False,
        minloglevel=2,
        num_threads=1,
    )
    model = folder / "source.model"
    (folder / "source.spm").write_bytes(model.read_bytes())
    (folder / "target.spm").write_bytes(model.read_bytes())
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    pieces = [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
    pieces = [piece for piece in pieces if piece not in ("<unk>", "<s>", "</s>")]
    marian = ["</s>", "<unk>", *pieces, ">>spa<<", ">>fra<<", "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(marian)}))
    m2m100 = ["<s>", "<pad>", "</s>", "<unk>", *pieces]
    (folder / "m2m100.json").write_text(json.dumps({piece: i for i, piece in enumerate(m2m100)}))
    return folder


def marian_tokenizer() -> Any:
    folder = _sentencepiece_folder()
    return tf.MarianTokenizer(str(folder / "source.spm"), str(folder / "target.spm"), str(folder / "vocab.json"))


def _m2m100_tokenizer() -> Any:
    folder = _sentencepiece_folder()
    return tf.M2M100Tokenizer(str(folder / "m2m100.json"), str(folder / "source.model"), src_lang="en", tgt_lang="es")


def _nllb_tokenizer() -> Any:
    parts = _metaspace_bpe("<s>", "<pad>", "</s>", "<unk>")
    codes = ["eng_Latn", "spa_Latn"]
    return tf.NllbTokenizer(**parts, src_lang="eng_Latn", tgt_lang="spa_Latn", extra_special_tokens=codes)


def _mbart_tokenizer() -> Any:
    vocab = _unigram("<s>", "<pad>", "</s>", "<unk>")
    return tf.MBartTokenizer(vocab=vocab, src_lang="en_XX", tgt_lang="es_XX")


def _t5_tokenizer() -> Any:
    return tf.T5Tokenizer(vocab=_unigram("<pad>", "</s>", "<unk>"), extra_ids=0)


def _pegasus_tokenizer() -> Any:
    return tf.PegasusTokenizer(vocab=_unigram("<pad>", "</s>", "<unk>", "<mask_2>"), offset=2, mask_token_sent=None)


def _roberta_tokenizer() -> Any:
    return tf.RobertaTokenizer(**_byte_level("<s>", "<pad>", "</s>", "<unk>", "<mask>"))


def _bart_tokenizer() -> Any:
    return tf.BartTokenizer(**_byte_level("<s>", "<pad>", "</s>", "<unk>", "<mask>"))


def _albert_tokenizer() -> Any:
    return tf.AlbertTokenizer(vocab=_unigram("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"))


def bert_tokenizer() -> Any:
    return tf.BertTokenizer(vocab=_word_piece())


def gpt2_tokenizer() -> Any:
    return tf.GPT2Tokenizer(**_byte_level("<|endoftext|>"))


def _qwen2_tokenizer() -> Any:
    tokenizer = tf.Qwen2Tokenizer(**_byte_level("<|endoftext|>", "<|user|>", "<|assistant|>"))
    tokenizer.chat_template = (
        "{% for m in messages %}<|user|> {{ m['content'] }} <|endoftext|>{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|> {% endif %}"
    )
    return tokenizer


def _llama_tokenizer() -> Any:
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]  # for characters that were not in the corpus
    return tf.LlamaTokenizer(**_metaspace_bpe("<unk>", "<s>", "</s>", *bytes_), add_bos_token=True)


def _bart_like(tokenizer: Any, **more: Any) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer),
        "d_model": WIDTH,
        "encoder_layers": LAYERS,
        "decoder_layers": LAYERS,
        "encoder_attention_heads": HEADS,
        "decoder_attention_heads": HEADS,
        "encoder_ffn_dim": 32,
        "decoder_ffn_dim": 32,
        "max_position_embeddings": 128,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "forced_eos_token_id": None,
        "init_std": 0.4,  # large enough that attention is not uniform
        "dropout": 0.1,
    } | more


def _bert_like(tokenizer: Any, **more: Any) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": 32,
        "max_position_embeddings": 128,
        "pad_token_id": tokenizer.pad_token_id,
        "initializer_range": 0.4,
    } | more


def _llama_like(tokenizer: Any, **more: Any) -> dict[str, Any]:
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
    return (
        _bert_like(tokenizer, num_key_value_heads=2, pad_token_id=pad)
        | {
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
        }
        | more
    )


def _marian() -> tuple[Any, Any]:
    t = marian_tokenizer()
    return tf.MarianMTModel(
        tf.MarianConfig(**_bart_like(t, decoder_start_token_id=t.pad_token_id, scale_embedding=True))
    ), t


def _bart() -> tuple[Any, Any]:
    t = _bart_tokenizer()
    return tf.BartForConditionalGeneration(tf.BartConfig(**_bart_like(t, decoder_start_token_id=t.eos_token_id))), t


def _mbart() -> tuple[Any, Any]:
    t = _mbart_tokenizer()
    return tf.MBartForConditionalGeneration(tf.MBartConfig(**_bart_like(t, scale_embedding=True))), t


def _m2m100() -> tuple[Any, Any]:
    t = _m2m100_tokenizer()
    more = {"decoder_start_token_id": t.eos_token_id, "vocab_size": t.encoder_size + len(t.lang_code_to_id) + 8}
    return tf.M2M100ForConditionalGeneration(tf.M2M100Config(**_bart_like(t, **more))), t


def _nllb() -> tuple[Any, Any]:
    t = _nllb_tokenizer()
    return tf.M2M100ForConditionalGeneration(tf.M2M100Config(**_bart_like(t, decoder_start_token_id=t.eos_token_id))), t


def _pegasus() -> tuple[Any, Any]:
    t = _pegasus_tokenizer()
    more = {"decoder_start_token_id": t.pad_token_id, "scale_embedding": True, "bos_token_id": None}
    return tf.PegasusForConditionalGeneration(tf.PegasusConfig(**_bart_like(t, **more))), t


def _t5_like(config: Any, model: Any) -> tuple[Any, Any]:
    t = _t5_tokenizer()
    settings = config(
        vocab_size=len(t),
        d_model=WIDTH,
        d_kv=WIDTH // HEADS,
        d_ff=32,
        num_layers=LAYERS,
        num_heads=HEADS,
        pad_token_id=t.pad_token_id,
        eos_token_id=t.eos_token_id,
        decoder_start_token_id=t.pad_token_id,
        initializer_factor=1.5,
    )
    return model(settings), t


def _bert(kind: str) -> tuple[Any, Any]:
    t = bert_tokenizer()
    return getattr(tf, f"Bert{kind}")(tf.BertConfig(**_bert_like(t), num_labels=3)), t


def _roberta(kind: str) -> tuple[Any, Any]:
    t = _roberta_tokenizer()
    return getattr(tf, f"Roberta{kind}")(tf.RobertaConfig(**_bert_like(t), num_labels=3)), t


def albert(groups: int = 1) -> tuple[Any, Any]:
    """One module for all layers of a group of them."""
    t = _albert_tokenizer()
    config = tf.AlbertConfig(**_bert_like(t), embedding_size=8, num_hidden_groups=groups)
    return tf.AlbertForMaskedLM(config), t


def _distilbert(kind: str) -> tuple[Any, Any]:
    t = bert_tokenizer()
    config = tf.DistilBertConfig(
        vocab_size=len(t),
        dim=WIDTH,
        hidden_dim=32,
        n_layers=LAYERS,
        n_heads=HEADS,
        max_position_embeddings=128,
        pad_token_id=t.pad_token_id,
        initializer_range=0.4,
        num_labels=3,
    )
    return getattr(tf, f"DistilBert{kind}")(config), t


def _gpt2(cls: Any = tf.GPT2LMHeadModel) -> tuple[Any, Any]:
    t = gpt2_tokenizer()
    config = tf.GPT2Config(
        vocab_size=len(t),
        n_embd=WIDTH,
        n_layer=LAYERS,
        n_head=HEADS,
        n_positions=128,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
        initializer_range=0.4,
        num_labels=3,
    )
    return cls(config), t


def _llama() -> tuple[Any, Any]:
    t = _llama_tokenizer()
    return tf.LlamaForCausalLM(tf.LlamaConfig(**_llama_like(t))), t


def _qwen2() -> tuple[Any, Any]:
    t = _qwen2_tokenizer()
    return tf.Qwen2ForCausalLM(tf.Qwen2Config(**_llama_like(t))), t


def _gemma2() -> tuple[Any, Any]:
    """Attention with a soft cap, which the fast kernel lacks."""
    t = _llama_tokenizer()
    more = {"head_dim": 4, "attn_logit_softcapping": 2.0, "sliding_window": 4, "query_pre_attn_scalar": 4}
    return tf.Gemma2ForCausalLM(tf.Gemma2Config(**_llama_like(t, **more))), t


def _gpt_oss() -> tuple[Any, Any]:
    """Attention with sinks, which take weight and give nothing."""
    t = _llama_tokenizer()
    more = {"head_dim": 4, "num_local_experts": 2, "num_experts_per_tok": 1}
    return tf.GptOssForCausalLM(tf.GptOssConfig(**_llama_like(t, **more))), t


def _lstm(**form: Any) -> tuple[Any, Any]:
    t = marian_tokenizer()
    return build_lstm(LstmSettings(width=WIDTH, layers=LAYERS, **form), t), t


def _conv() -> tuple[Any, Any]:
    t = marian_tokenizer()
    model = build_conv(ConvSettings(encoder_layers=LAYERS, decoder_layers=LAYERS, width=WIDTH, max_positions=128), t)
    with torch.no_grad():  # large enough that attention is not uniform
        for stack in (model.get_encoder(), model.get_decoder()):
            stack.embed_tokens.weight.mul_(5)
    return model, t


def _classifier(encoder: str, alignment: str) -> tuple[Any, Any]:
    t = bert_tokenizer()
    settings = ClassifierSettings(
        encoder=encoder, layers=LAYERS, width=WIDTH, embedding_width=WIDTH, alignment=alignment, max_positions=128
    )
    model = build_classifier(settings, t, ["bad", "fair", "good"])
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.4)  # large enough that attention is not uniform
    return model, t


TRANSLATORS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "marian": _marian,
    "bart": _bart,
    "mbart": _mbart,
    "m2m100": _m2m100,
    "nllb": _nllb,
    "pegasus": _pegasus,
    "t5": lambda: _t5_like(tf.T5Config, tf.T5ForConditionalGeneration),
    "mt5": lambda: _t5_like(tf.MT5Config, tf.MT5ForConditionalGeneration),
    "lstm": _lstm,
    "lstm-linear": lambda: _lstm(combination="linear"),
    "lstm-input-feeding": lambda: _lstm(bidirectional=False, input_feeding=True, combination="tanh", tied="none"),
    "conv": _conv,
}
DECODERS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "gpt2": _gpt2,
    "llama": _llama,
    "qwen2": _qwen2,
    "gemma2": _gemma2,
    "gpt_oss": _gpt_oss,
}
CLASSIFIERS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "bert-classifier": lambda: _bert("ForSequenceClassification"),
    "roberta-classifier": lambda: _roberta("ForSequenceClassification"),
    "distilbert-classifier": lambda: _distilbert("ForSequenceClassification"),
    "gpt2-classifier": lambda: _gpt2(tf.GPT2ForSequenceClassification),
    "lstm-classifier": lambda: _classifier("lstm", "additive"),
    "transformer-classifier": lambda: _classifier("transformer", "dot"),
}
FILLERS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "bert-filler": lambda: _bert("ForMaskedLM"),
    "roberta-filler": lambda: _roberta("ForMaskedLM"),
    "distilbert-filler": lambda: _distilbert("ForMaskedLM"),
    "albert-filler": albert,
}
ZOO = TRANSLATORS | DECODERS | CLASSIFIERS | FILLERS
OURS = ("lstm", "lstm-input-feeding", "lstm-linear", "conv", "lstm-classifier", "transformer-classifier")
LANGUAGES = {"mbart": ("en_XX", "es_XX"), "m2m100": ("en", "es"), "nllb": ("eng_Latn", "spa_Latn")}


def fresh(name: str, **options: Any) -> LoadedModel:
    """Build a model anew, to be changed by a test."""
    torch.manual_seed(0)
    module, tokenizer = ZOO[name]()
    if name in LANGUAGES:
        options = dict(zip(("source_lang", "target_lang"), LANGUAGES[name], strict=True)) | options
    with torch.no_grad():  # biases start at zero, where a wrong treatment of them would not show
        for parameter_name, parameter in module.named_parameters():
            if parameter_name.endswith("bias") and parameter.ndim == 1:
                parameter.normal_(0, 0.3)
    return sightline.load(module.eval(), tokenizer, **options)


def model(name: str) -> LoadedModel:
    """Return a model of the zoo; it is shared by all tests, which must not change it."""
    loaded, as_built = _shared(name)
    assert _weights_state(loaded) == as_built, f"an earlier test changed the shared {name}: it should use zoo.fresh"
    return loaded


@cache
def _shared(name: str) -> tuple[LoadedModel, list[tuple[torch.dtype, int]]]:
    loaded = fresh(name)
    return loaded, _weights_state(loaded)


def _weights_state(loaded: LoadedModel) -> list[tuple[torch.dtype, int]]:
    """Return the type of each weight, and how often it was changed in place."""
    return [(weight.dtype, weight._version) for weight in loaded.module.parameters()]


def fresh_precise(name: str) -> LoadedModel:
    """Build a model anew in double precision, to be changed by a test."""
    loaded = fresh(name)
    if name == "gpt_oss":
        loaded.module.set_experts_implementation("eager")  # the grouped product takes no float64
    loaded.module.double()
    return loaded


@cache
def precise(name: str) -> LoadedModel:
    """Return a model in double precision, to compare two ways to compute one thing; tests must not change it."""
    return fresh_precise(name)


def texts(name: str) -> list[str]:
    """Return sources that a model of the zoo can take."""
    loaded = model(name)
    if loaded.task == "fill":
        gap = loaded.tokenizer.mask_token
        return [f"The {gap} sleeps on the mat.", f"A small dog {gap} the {gap}."]
    return SOURCES


def targets(name: str) -> list[str] | None:
    """Return targets that go with `texts`, where the model is not left to answer itself."""
    return TARGETS if model(name).task in ("translate", "continue") else None
