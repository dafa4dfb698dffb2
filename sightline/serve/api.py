"""The JSON API. Every route checks a body, queues one call of a public verb, and answers with what it returned."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi import Path as PathParameter
from fastapi.responses import JSONResponse, Response, StreamingResponse

import sightline
from sightline.alignment.links import Alignment
from sightline.attribution import Attribution
from sightline.errors import InputError, SightlineError, unknown_name
from sightline.methods import METHODS, find_method, resolved
from sightline.models.loaded import LoadedModel
from sightline.models.names import TASK_SUMMARIES
from sightline.serve import bodies
from sightline.serve.continuing import GREEDY, Continuation, continue_text
from sightline.serve.limits import (
    ClientLeft,
    Limits,
    NotFound,
    TooLarge,
    TooSlow,
    Unprocessable,
    check_characters,
    check_settings,
)
from sightline.serve.runs import describe_run, find_runs, read_run
from sightline.serve.wording import WORDINGS, Wording
from sightline.serve.work import Abandoned, Job, Worker, Workers

Tell = Callable[[str, Any], None]
Words = asyncio.Queue[tuple[str, Any]]
LOOK_EVERY = 0.2  # seconds between looks whether the client is still there
PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": bodies.Problem, "description": "The body cannot be read."},
    413: {"model": bodies.Problem, "description": "The texts are too long."},
    422: {"model": bodies.Problem, "description": "Something in the body is wrong."},
    429: {"model": bodies.Problem, "description": "Too many requests are waiting."},
    503: {"model": bodies.Problem, "description": "The model is not ready, or the server is stopping."},
    504: {"model": bodies.Problem, "description": "It took too long."},
}
STREAMED: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}
NOT_FOUND = {"model": bodies.Problem, "description": "There is nothing by this number."}
FIXED = {"model": bodies.Problem, "description": "Refused by the guard."}
GUARDED: dict[int | str, dict[str, Any]] = {401: FIXED, 403: FIXED, 411: FIXED, 415: FIXED, 421: FIXED}


def build_api(workers: Workers, limits: Limits, folder: Path | None = None) -> APIRouter:
    """Make the routes over some models, and over the runs and studies of a folder."""
    api = APIRouter(responses=GUARDED)
    asked = PROBLEMS | {}

    async def ask(
        request: Request,
        body: bodies.ModelBody,
        run: Callable[[LoadedModel, list[Any]], Sequence[Any]],
        item: Any,
        key: Any = None,
    ) -> Any:
        """Queue a job, and wait for it as long as the client does and the time limit allows."""
        worker = find_worker(workers, body.model)

        def run_directed(model: LoadedModel, items: list[Any]) -> Sequence[Any]:
            return run(directed(model, body.source_lang), items)

        job = worker.submit(Job(run_directed, item, None if key is None else (key, body.source_lang)))
        return await wait_for(request, job, limits.seconds)

    @api.get("/health", response_model=bodies.HealthAnswer, tags=["server"])
    async def health() -> dict[str, str]:
        """Report that the server is running."""
        return {"status": "ok"}

    @api.get("/ready", response_model=bodies.HealthAnswer, responses={503: PROBLEMS[503]}, tags=["server"])
    async def ready() -> Any:
        """Report whether every model is loaded."""
        if workers.are_ready:
            return {"status": "ready"}
        return JSONResponse({"error": "The models are still loading: try again later."}, 503)

    @api.get("/api/models", response_model=list[bodies.ModelAnswer], tags=["models"])
    async def models() -> list[dict[str, Any]]:
        """List the models that this server was started with."""
        return [describe_model(name, worker) for name, worker in workers.by_name.items()]

    @api.get("/api/methods", response_model=list[bodies.MethodAnswer], tags=["models"])
    async def methods() -> list[dict[str, Any]]:
        """List the attribution methods: what each tells, its cost, its settings with their defaults."""
        return [
            {
                "name": name,
                "settings": (settings := resolved(method.defaults)),
                "contrast": "contrast" in settings,
                **WORDINGS.get(name, Wording(method.summary, ""))._asdict(),
            }
            for name, method in METHODS.items()
        ]

    @api.post("/api/explain", response_model=bodies.AttributionAnswer, responses=asked, tags=["verbs"])
    async def explain(request: Request, body: bodies.ExplainBody) -> Any:
        """Show which inputs the model used for each output."""
        check_characters(limits, body.source, body.target)
        check_settings(limits, body.settings)
        find_method(body.method).settings(body.method, body.settings)

        def run(model: LoadedModel, pairs: list[tuple[str, str | None]]) -> list[Attribution]:
            for pair in pairs:
                check_tokens(limits, model, *pair)
            sources = [source for source, _ in pairs]
            targets = [target for _, target in pairs if target is not None] or None
            generation = GREEDY if model.continues else None  # what is explained is what was streamed
            return sightline.explain(
                model, sources, targets, method=body.method, progress=False, generation=generation, **body.settings
            )

        key = ("explain", body.method, json.dumps(body.settings, sort_keys=True), body.target is None)
        why = await ask(request, body, run, (body.source, body.target), key)
        return JSONResponse(why.to_dict())

    @api.post("/api/align", response_model=bodies.AlignAnswer, responses=asked, tags=["verbs"])
    async def align(request: Request, body: bodies.AlignBody) -> Any:
        """Link each target word to the source words that it came from."""
        sources, targets = ([text] if isinstance(text, str) else text for text in (body.source, body.target))
        if isinstance(body.source, str) != isinstance(body.target, str) or len(sources) != len(targets):
            raise Unprocessable(f"There are {len(sources)} sources and {len(targets)} targets: give as many of each.")
        if len(sources) > limits.lines:
            raise TooLarge(
                f"These are {len(sources)} lines, and this server takes {limits.lines}: send fewer at a time."
            )
        check_characters(limits, *sources, *targets)
        check_settings(limits, body.settings)

        def run(model: LoadedModel, items: list[tuple[list[str], list[str]]]) -> list[list[Alignment]]:
            for source, target in ((s, t) for item in items for s, t in zip(*item, strict=True)):
                check_tokens(limits, model, source, target)
            found = iter(
                sightline.align(
                    model,
                    [source for item in items for source in item[0]],
                    [target for item in items for target in item[1]],
                    method=body.method,
                    progress=False,
                    **body.settings,
                )
            )
            return [[next(found) for _ in item[0]] for item in items]

        key = ("align", body.method, json.dumps(body.settings, sort_keys=True))
        alignments = await ask(request, body, run, (sources, targets), key)
        pairs = zip(sources, targets, alignments, strict=True)
        return {"alignments": [describe_links(s.split(), t.split(), links) for s, t, links in pairs]}

    @api.post(
        "/api/translate",
        response_model=bodies.TranslateAnswer,
        responses=asked | STREAMED,
        tags=["verbs"],
    )
    async def translate(request: Request, body: bodies.TranslateBody) -> Any:
        """Translate a text and align its words; with `Accept: text/event-stream`, each word as soon as it is there."""
        check_characters(limits, body.source)
        if wants_events(request):
            worker = find_worker(workers, body.model)
            if worker.model is not None and not directed(worker.model, body.source_lang).translates:
                raise Unprocessable(f"The model {worker.name} does not translate: choose another.")

            def tell_words(model: LoadedModel, tell: Tell) -> None:
                chosen = directed(model, body.source_lang)
                check_tokens(limits, chosen, body.source, None)
                text = []
                for word in sightline.stream_translation(chosen, body.source):
                    tell("word", {"number": word.number, "word": word.word, "links": sorted(word.sources.items())})
                    text.append(word.word)
                tell("done", {"text": " ".join(text), "source_words": body.source.split()})

            return stream(worker, tell_words, limits)

        def run(model: LoadedModel, sources: list[str]) -> Any:
            for source in sources:
                check_tokens(limits, model, source, None)
            return sightline.translate(model, sources, align=True, progress=False, num_beams=1)

        translation = await ask(request, body, run, body.source, "translate")
        links = describe_links(body.source.split(), list(translation.words), translation.alignment)
        return {"text": translation.text} | links

    @api.post("/api/continue", response_model=bodies.ContinueAnswer, responses=asked | STREAMED, tags=["verbs"])
    async def continue_(request: Request, body: bodies.ContinueBody) -> Any:
        """Continue a text; with `Accept: text/event-stream`, each word as soon as it is there."""
        check_characters(limits, body.source)
        worker = find_worker(workers, body.model)
        if worker.model is not None and not worker.model.continues:
            raise Unprocessable(f"The model {worker.name} does not continue texts: choose another.")

        def run_one(model: LoadedModel, on_word: Callable[[int, str], None]) -> Continuation:
            check_tokens(limits, model, body.source, None)
            return continue_text(model, body.source, on_word)

        if wants_events(request):

            def tell_words(model: LoadedModel, tell: Tell) -> None:
                found = run_one(model, lambda number, word: tell("word", {"number": number, "word": word}))
                tell("done", {"text": found.text, "target": found.target})

            return stream(worker, tell_words, limits)
        found = await ask(request, body, lambda model, _: [run_one(model, lambda *_: None)], None)
        return found._asdict()

    @api.post("/api/tags", response_model=bodies.TagsAnswer, responses=asked, tags=["verbs"])
    async def tags(request: Request, body: bodies.TagsBody) -> Any:
        """Translate text with inline markup, and carry the markup over."""
        check_characters(limits, body.source)

        def run(model: LoadedModel, texts: list[str]) -> list[tuple[str, Any]]:
            from sightline.alignment.markup import strip_markup

            plain = [" ".join(strip_markup(text)) for text in texts]
            for text in plain:
                check_tokens(limits, model, text, None) if text else None
            markup = sightline.translate_markup(model, texts, progress=False, num_beams=1)
            translated = sightline.translate(model, plain, align=True, progress=False, num_beams=1)
            return list(zip(markup, zip(plain, translated, strict=True), strict=True))

        markup, (plain, translation) = await ask(request, body, run, body.source, "tags")
        links = describe_links(plain.split(), list(translation.words), translation.alignment)
        return {"markup": markup, "text": translation.text} | links

    @api.post("/api/contrast", response_model=bodies.ContrastAnswer, responses=asked, tags=["verbs"])
    async def contrast(request: Request, body: bodies.ContrastBody) -> Any:
        """Show what the model would have written instead and, for one of these, what speaks for which."""
        check_characters(limits, body.source, body.target, body.contrast)
        check_settings(limits, body.settings)

        def run(model: LoadedModel, items: list[Any]) -> list[Any]:
            check_tokens(limits, model, body.source, body.target)
            others = sightline.alternatives(model, body.source, body.target, word=body.position)
            why = None
            if body.contrast is not None:
                why = sightline.contrast(
                    model,
                    body.source,
                    body.target,
                    body.contrast,
                    word=body.position,
                    method=body.method,
                    **body.settings,
                )
            return [(others, why)]

        others, why = await ask(request, body, run, None)
        return JSONResponse(
            {
                "alternatives": [one._asdict() for one in others],
                "attribution": None if why is None else why.to_dict(),
            }
        )

    @api.post("/api/faithfulness", response_model=list[bodies.FaithfulnessAnswer], responses=asked, tags=["measures"])
    async def faithfulness(request: Request, body: bodies.FaithfulnessBody) -> Any:
        """Compare methods by what deleting the words that they name does to the output."""
        check_characters(limits, body.source, body.target)

        def run(model: LoadedModel, items: list[Any]) -> list[Any]:
            check_tokens(limits, model, body.source, body.target)
            targets = None if body.target is None else [body.target]
            return [sightline.measure_faithfulness(model, [body.source], targets, methods=body.methods)]

        found = await ask(request, body, run, None)
        return JSONResponse([one.to_dict() for one in found])

    @api.post("/api/score", response_model=bodies.ScoreAnswer, responses={422: PROBLEMS[422]}, tags=["measures"])
    def score(body: bodies.ScoreBody) -> Any:
        """Score links against the links that are right."""
        possible = body.possible or [[] for _ in body.gold]
        if not len(body.links) == len(body.gold) == len(possible):
            raise Unprocessable("There should be as many sentences of links as of gold links.")
        right = [Alignment(sure, more) for sure, more in zip(body.gold, possible, strict=True)]
        return sightline.score([Alignment(links) for links in body.links], right).to_dict()

    @api.post(
        "/api/page",
        response_class=Response,
        responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}, 422: PROBLEMS[422]},
        tags=["pictures"],
    )
    def page(body: bodies.DrawBody) -> Any:
        """Return a self-contained page of an attribution."""
        try:
            why = Attribution.from_dict(body.attribution)
        except (AssertionError, KeyError, TypeError, ValueError, AttributeError):
            raise Unprocessable("This is not an attribution such as POST /api/explain answers.") from None
        return Response(why.to_html(), media_type="text/html", headers={"content-disposition": "attachment"})

    @api.get("/api/runs", response_model=list[bodies.RunAnswer], tags=["runs"])
    def runs() -> list[dict[str, str]]:
        """List the runs and studies of the folder that the server was started with."""
        return [] if folder is None else [describe_run(path, folder) for path in find_runs(folder)]

    @api.get("/api/runs/{number}", response_model=bodies.CurvesAnswer, responses={404: NOT_FOUND}, tags=["runs"])
    def run(number: Annotated[int, PathParameter(ge=0, le=10_000)]) -> dict[str, Any]:
        """Return the curves of one of them, by its number in the list."""
        found = [] if folder is None else find_runs(folder)
        if number >= len(found):
            raise NotFound(f"There is no run {number} here.")
        return read_run(found[number])

    return api


def find_worker(workers: Workers, name: str | None) -> Worker:
    """Find a model by the name that the server was started with; clients cannot load any other."""
    if name is None:
        return next(iter(workers.by_name.values()))
    if name not in workers.by_name:
        raise unknown_name("model on this server", name, workers.by_name)
    return workers.by_name[name]


def directed(model: LoadedModel, source_lang: str | None) -> LoadedModel:
    """Return the direction of a model that reads a language."""
    if source_lang is None or source_lang == model.prompt.source_lang:
        return model
    if model.other_way is not None and source_lang == model.other_way.prompt.source_lang:
        return model.other_way
    raise InputError(f"This model does not read the language {source_lang!r}.")


def check_tokens(limits: Limits, model: LoadedModel, source: str, target: str | None) -> None:
    """Refuse texts of too many tokens."""
    count = len(model.encode(source, target)) if source.strip() else 0
    if count > limits.tokens:
        raise TooLarge(f"The texts have {count:,} tokens, and this server takes {limits.tokens:,}: shorten them.")


async def wait_for(request: Request, job: Job, seconds: float) -> Any:
    """Wait for a job; if the time is over or the client is gone, its worker is free again."""
    end = asyncio.get_running_loop().time() + seconds
    try:
        while True:
            done, _ = await asyncio.wait({job.result}, timeout=LOOK_EVERY)
            if done:
                return job.result.result()
            if asyncio.get_running_loop().time() > end:
                raise TooSlow(
                    f"This took longer than {seconds:g} seconds: shorten the texts or choose a cheaper method."
                )
            if await request.is_disconnected():
                raise ClientLeft("The client did not wait for the answer.")
    finally:
        job.abandon()


def wants_events(request: Request) -> bool:
    """Return whether the client asks for server-sent events."""
    return "text/event-stream" in request.headers.get("accept", "")


def stream(worker: Worker, tell_words: Callable[[LoadedModel, Tell], None], limits: Limits) -> StreamingResponse:
    """Queue a job, and answer with what it tells while it works; a queue that is full refuses it before that."""
    loop = asyncio.get_running_loop()
    words: Words = asyncio.Queue()

    def tell(kind: str, data: Any) -> None:
        if job.abandoned.is_set():
            raise Abandoned
        loop.call_soon_threadsafe(words.put_nowait, (kind, data))

    def run(model: LoadedModel, items: list[Any]) -> list[None]:
        tell_words(model, tell)
        return [None]

    job = Job(run, None)
    worker.submit(job)
    job.result.add_done_callback(lambda done: _tell_failure(done, words))
    return StreamingResponse(
        stream_words(job, words, limits), media_type="text/event-stream", headers={"cache-control": "no-store"}
    )


async def stream_words(job: Job, words: Words, limits: Limits) -> AsyncIterator[str]:
    """Yield server-sent events: `word` for each word, then `done`, or `error` with one sentence."""
    loop = asyncio.get_running_loop()
    end = loop.time() + limits.seconds
    try:
        while True:
            kind, data = await asyncio.wait_for(words.get(), max(end - loop.time(), 0.001))
            yield event(kind, data)
            if kind != "word":
                return
    except TimeoutError:
        yield event("error", {"error": f"This took longer than {limits.seconds:g} seconds: shorten the text."})
    finally:
        job.abandon()


def _tell_failure(done: asyncio.Future[Any], words: Words) -> None:
    error = None if done.cancelled() else done.exception()
    if error is not None:
        sentence = (
            str(error) if isinstance(error, SightlineError) else "Something went wrong here: see the server's log."
        )
        words.put_nowait(("error", {"error": sentence}))


def event(kind: str, data: Any) -> str:
    """Write a server-sent event."""
    return f"event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"


def describe_links(source: list[str], target: list[str], links: Alignment | None) -> dict[str, Any]:
    """Return words and links as plain data."""
    confidences = {} if links is None else links.confidences
    return {
        "source_words": source,
        "target_words": target,
        "links": [[*link, round(confidence, 4)] for link, confidence in confidences.items()],
    }


def describe_model(name: str, worker: Worker) -> dict[str, Any]:
    """Describe what a model does, as far as it is loaded."""
    model = worker.model
    directions = [] if model is None else [model.prompt.source_lang, model.prompt.target_lang]
    return {
        "name": name,
        "task": None if model is None else model.task,
        "explains": None if model is None else TASK_SUMMARIES[model.task],
        "ready": worker.is_ready,
        "problem": None if worker.error is None else str(worker.error),
        "labels": [] if model is None else list(model.labels.values()),
        "methods": list(worker.methods),
        "knows_its_methods": worker.knows_its_methods,
        "languages": [lang for lang in directions if lang] if model is not None and model.other_way else [],
        "calibrated": model is not None and model.calibration is not None,
    }
