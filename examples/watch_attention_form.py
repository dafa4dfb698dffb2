"""Watch attention form in a transformers Trainer run, and draw its curves.

    python examples/watch_attention_form.py attention.html

A small Transformer learns a generated language. At chosen steps the recorder measures, on the same sentences, how
concentrated its attention is, and whether it looks where leave-one-out says that a word comes from: both form
gradually. With a model of your own, keep the recorder, its callback and the last statements.
"""

import sys
import tempfile
from itertools import islice
from pathlib import Path

import torch
import transformers

from sightline.data.language import GeneratedLanguage, LanguageSettings
from sightline.models.transformer import TransformerSettings, build_transformer
from sightline.training.recorder import AttentionRecorder, RecorderCallback
from sightline.training.vocabulary import train_tokenizer
from sightline.view.curves import forming_step, read_record, render_record

STEPS, BATCH = 400, 32
language = GeneratedLanguage(LanguageSettings(stems=60, clauses=1, inflection=False))
pairs = [(pair.source, pair.target) for pair in islice(language.stream("train"), 4000)]
tokenizer = train_tokenizer((text for pair in pairs for text in pair), 600, 64)
torch.manual_seed(0)
settings = TransformerSettings(
    encoder_layers=1, decoder_layers=1, width=64, heads=2, feed_forward=128, max_positions=64
)
model = build_transformer(settings, tokenizer)
examples = [dict(tokenizer(source)) | {"labels": tokenizer(target)["input_ids"]} for source, target in pairs[100:]]
folder = Path(tempfile.mkdtemp())

sources, targets = (list(side) for side in zip(*pairs[:40], strict=True))
recorder = AttentionRecorder(folder / "attention.jsonl", sources, targets, 40, methods=("erasure",))
transformers.Trainer(
    model,
    transformers.TrainingArguments(
        str(folder),
        max_steps=STEPS,
        per_device_train_batch_size=BATCH,
        learning_rate=3e-3,
        lr_scheduler_type="constant",
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        logging_steps=100,
    ),
    data_collator=transformers.DataCollatorForSeq2Seq(tokenizer, model),
    train_dataset=examples,
    processing_class=tokenizer,
    callbacks=[RecorderCallback(recorder)],
).train()

record = read_record(recorder.path)
for step in record:
    entropy, agreement = step["entropy"][-1], step["agreement with erasure"][-1]
    print(f"step {step['step']:4}  entropy {entropy:.2f}  agreement with leave-one-out {agreement:.2f}")
print(f"Attention narrows by step {forming_step(record)}.")
if len(sys.argv) > 1:
    Path(sys.argv[1]).write_text(render_record(recorder.path), encoding="utf-8")
