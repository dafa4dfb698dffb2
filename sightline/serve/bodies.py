"""What comes in and what goes out: the same words as in Python, unknown ones refused."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Scalar = bool | int | float | str | None
SomeText = Annotated[str, StringConstraints(pattern=r"\S")]
Link = tuple[Annotated[int, Field(ge=0, le=100_000)], Annotated[int, Field(ge=0, le=100_000)]]

WordLink = Annotated[list[int | float], Field(min_length=3, max_length=3)]
"""A source word, a target word, and how sure their link is."""


class Body(BaseModel):
    """A body of which every key is known."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=(), allow_inf_nan=False)

    @classmethod
    def keys(cls) -> list[str]:
        return list(cls.model_fields)


class ModelBody(Body):
    """A request to one of the models."""

    model: str | None = Field(None, description="One of the names of GET /api/models; by default the first.")
    source_lang: str | None = Field(
        None, description="For a model that translates both ways: the language of the source.", examples=["en"]
    )


class ExplainBody(ModelBody):
    """What to explain."""

    source: SomeText = Field(description="The text that the model reads.", examples=["The cat sleeps."])
    target: SomeText | None = Field(
        None, description="The output to explain; by default the model's own.", examples=["El gato duerme."]
    )
    method: str = Field("norms", description="One of GET /api/methods.", examples=["norms"])
    settings: dict[str, Scalar] = Field(
        default_factory=dict, description="Settings of the method.", examples=[{"layer": -1}]
    )


class TranslateBody(ModelBody):
    """What to translate."""

    source: SomeText = Field(description="The text to translate.", examples=["The cat sleeps."])


class ContinueBody(ModelBody):
    """What to continue."""

    source: SomeText = Field(description="The text to continue.", examples=["The cat sees"])


class TagsBody(ModelBody):
    """What to translate with its markup."""

    source: SomeText = Field(description="Text with inline markup.", examples=["The <b>black</b> cat sleeps."])


class AlignBody(ModelBody):
    """What to align: one pair, or as many sources as targets."""

    source: str | list[str] = Field(description="A text, or one a line.", examples=["The cat sleeps."])
    target: str | list[str] = Field(description="Its translation, or one a line.", examples=["El gato duerme."])
    method: str = Field("auto", description="`auto`, or one of GET /api/methods.", examples=["auto"])
    settings: dict[str, Scalar] = Field(default_factory=dict, description="Settings of the method.", examples=[{}])


class ContrastBody(ModelBody):
    """Why this output and not another; without `contrast`, what the others are."""

    source: SomeText = Field(description="The text that the model reads.", examples=["The dog sleeps."])
    target: SomeText = Field(description="The output to explain.", examples=["El perro duerme."])
    position: int = Field(0, ge=0, le=100_000, description="The number of a target word, from 0.", examples=[1])
    contrast: SomeText | None = Field(None, description="The word, or label, to compare with.", examples=["gato"])
    method: str = Field("erasure", description="A method that has the setting `contrast`.", examples=["erasure"])
    settings: dict[str, Scalar] = Field(default_factory=dict, description="Settings of the method.", examples=[{}])


class FaithfulnessBody(ModelBody):
    """Which methods to compare."""

    source: SomeText = Field(description="The text that the model reads.", examples=["The cat sleeps."])
    target: SomeText | None = Field(None, description="The output; by default the model's own.")
    methods: list[str] = Field(
        ["norms", "random"], min_length=1, max_length=5, description="Methods, and `random`.", examples=[["norms"]]
    )


class ScoreBody(Body):
    """Links of sentences, and the links that are right."""

    links: list[list[Link]] = Field(max_length=1000, examples=[[[[0, 0], [1, 1]]]])
    gold: list[list[Link]] = Field(max_length=1000, description="Sure links.", examples=[[[[0, 0], [1, 2]]]])
    possible: list[list[Link]] | None = Field(None, max_length=1000, description="Links that are possible, too.")


class DrawBody(Body):
    """An attribution, as /api/explain answered it, to be saved as a page."""

    attribution: dict[str, Any] = Field(description="The body that POST /api/explain answered.")


class Problem(BaseModel):
    """Why a request was not carried out."""

    error: str = Field(examples=["There is no method 'norm'. Did you mean 'norms'?"])


class Side(BaseModel):
    """The positions of one side of an attribution."""

    tokens: list[str]
    words: list[str]
    word_ids: list[int | None]


class AttributionAnswer(BaseModel):
    """An Attribution as `to_dict` gives it."""

    model_config = ConfigDict(extra="allow")
    method: str
    settings: dict[str, Any]
    axes: list[str]
    source: Side
    target: Side
    prefix: Side
    scores: list[Any] = Field(description="Nested lists: the axes, then target, then source and prefix.")


class TranslateAnswer(BaseModel):
    """A translation and its word links: source word, target word, confidence."""

    text: str
    source_words: list[str]
    target_words: list[str]
    links: list[WordLink]


class ContinueAnswer(BaseModel):
    """A continuation: its text, its words, and what to give to /api/explain as `target` to explain it."""

    text: str
    words: list[str]
    target: str | None = Field(description="null where the model's pieces are not those of the text: give no target.")


class TagsAnswer(TranslateAnswer):
    """A translation with the markup of its source."""

    markup: str


class AlignAnswer(BaseModel):
    """The links of each pair."""

    alignments: list[PairAnswer]


class PairAnswer(BaseModel):
    """The words and links of one pair."""

    source_words: list[str]
    target_words: list[str]
    links: list[WordLink]


class AlternativeAnswer(BaseModel):
    """What the model could have written in place of a word."""

    text: str
    probability: float
    rank: int


class ContrastAnswer(BaseModel):
    """The model's alternatives at a position and, where a contrast was given, what speaks for the one and the other."""

    alternatives: list[AlternativeAnswer]
    attribution: AttributionAnswer | None


class Measure(BaseModel):
    """The mean of one measure of faithfulness, and how it varies."""

    model_config = ConfigDict(extra="allow")
    mean: float | None


class FaithfulnessAnswer(BaseModel):
    """How faithful one method is."""

    method: str
    comprehensiveness: Measure
    sufficiency: Measure
    correlation: Measure


class ScoreAnswer(BaseModel):
    """Scores in percent with their signature, by name."""

    model_config = ConfigDict(extra="allow")


class ModelAnswer(BaseModel):
    """What a model is, and whether it is ready."""

    name: str
    task: str | None
    explains: str | None
    ready: bool
    problem: str | None
    labels: list[str]
    methods: list[str]
    knows_its_methods: bool = Field(description="Whether `methods` is complete: a server tries them while it is idle.")
    languages: list[str]
    calibrated: bool


class MethodAnswer(BaseModel):
    """What a method tells, what it costs, and its settings."""

    name: str
    does: str
    cost: str
    settings: dict[str, Any]
    contrast: bool


class RunAnswer(BaseModel):
    """A run or study of the folder that is shown."""

    name: str
    kind: str


class PlotAnswer(BaseModel):
    """A plot of a run or study, drawn."""

    title: str
    note: str
    svg: str


class CurvesAnswer(BaseModel):
    """The plots of a run or study, as drawings, and tables that change over its steps."""

    title: str
    claims: list[dict[str, str | None]]
    plots: list[PlotAnswer]
    frames: list[dict[str, Any]]


class HealthAnswer(BaseModel):
    """Whether the server lives."""

    status: str


AlignAnswer.model_rebuild()
