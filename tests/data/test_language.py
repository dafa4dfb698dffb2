"""The generated language pair: exact gold, the difficulties it promises, repeatability and speed."""

import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.data import lexicon
from sightline.data.language import GeneratedLanguage, GeneratedPair, LanguageSettings
from sightline.errors import InputError

PLAIN = LanguageSettings(
    stems=200,
    inflection=False,
    local_reordering=False,
    long_reordering=False,
    fertility=0.0,
    unaligned=0.0,
    ambiguity=0.0,
)
SMALL = LanguageSettings(stems=200)

any_settings = st.builds(
    LanguageSettings,
    stems=st.integers(20, 200),
    zipf=st.floats(0, 2),
    clauses=st.integers(1, 3),
    inflection=st.booleans(),
    local_reordering=st.booleans(),
    long_reordering=st.booleans(),
    fertility=st.floats(0, 1),
    unaligned=st.floats(0, 1),
    ambiguity=st.floats(0, 1),
    seed=st.integers(0, 5),
)


def pairs_of(settings: LanguageSettings, count: int = 1000, split: str = "train") -> list[GeneratedPair]:
    return GeneratedLanguage(settings).pairs(count, split)


def target_stem(word: str) -> str:
    return re.sub(r"[aeiou]+[ns]?$", "", word)


def linked_words(pairs: list[GeneratedPair]) -> dict[str, set[str]]:
    """Collect the words that each source word is linked to."""
    found = defaultdict(set)
    for pair in pairs:
        for i, j in pair.links:
            found[pair.source_words[i]].add(pair.target_words[j])
    return found


def crossings(pair: GeneratedPair) -> list[int]:
    """List how far apart, in source words, the links lie that cross."""
    return [k - i for i, j in pair.links for k, m in pair.links if i < k and j > m]


@settings(max_examples=40, deadline=None)
@given(any_settings)
def test_pairs_are_well_formed(chosen):
    for pair in pairs_of(chosen, 20):
        assert all(re.fullmatch("[a-z]+", word) for word in pair.source_words + pair.target_words)
        assert pair.source.split() == list(pair.source_words)
        assert pair.target.split() == list(pair.target_words)
        assert all(0 <= i < len(pair.source_words) and 0 <= j < len(pair.target_words) for i, j in pair.links)
        unlinked_source = set(range(len(pair.source_words))) - {i for i, _ in pair.links}
        unlinked_target = set(range(len(pair.target_words))) - {j for _, j in pair.links}
        assert {pair.source_words[i] for i in unlinked_source} <= set(lexicon.ARTICLES)
        assert {pair.target_words[j] for j in unlinked_target} <= {lexicon.SUBJECT_PARTICLE}


def test_links_join_translations_and_only_those():
    """Read the lexicon as a dictionary: linked words are the two sides of one entry, others are not."""
    language = GeneratedLanguage(SMALL)
    concepts = [concept for words in language.words.values() for concept in words.concepts]
    entry_of = {concept.source: number for number, concept in enumerate(concepts)}
    target_entry_of = {stem: number for number, concept in enumerate(concepts) for stem in concept.targets}
    for pair in language.pairs(300):
        source_stems = [re.sub("[^aeiou]+$", "", word) for word in pair.source_words]
        source_entries = [entry_of.get(stem) for stem in source_stems]
        target_entries = [target_entry_of.get(target_stem(word)) for word in pair.target_words]
        for i, source_entry in enumerate(source_entries):
            for j, target_entry in enumerate(target_entries):
                if source_entry is None or target_entry is None:
                    continue
                occurs_once = source_entries.count(source_entry) == target_entries.count(target_entry) == 1
                if source_entry != target_entry:
                    assert (i, j) not in pair.links
                elif occurs_once:
                    assert (i, j) in pair.links


def test_every_word_has_one_reading():
    words = GeneratedLanguage().words
    forms = Counter()
    endings = {
        "noun": lexicon.SOURCE_NOUN,
        "verb": sum(lexicon.SOURCE_VERB, ()),
        "adjective": lexicon.SOURCE_ADJECTIVE,
        "adverb": (lexicon.SOURCE_ADVERB,),
    }
    for name, word_class in words.items():
        forms.update(concept.source + ending for concept in word_class.concepts for ending in endings[name])
    assert max(forms.values()) == 1


def test_plainest_language_is_word_by_word():
    for pair in pairs_of(PLAIN):
        assert len(pair.source_words) == len(pair.target_words)
        assert pair.links == {(i, i) for i in range(len(pair.source_words))}
    assert all(len(targets) == 1 for targets in linked_words(pairs_of(PLAIN)).values())


@pytest.mark.parametrize(("setting", "is_near"), [("local_reordering", True), ("long_reordering", False)])
def test_reordering_is_near_or_far(setting, is_near):
    pairs = pairs_of(replace(PLAIN, **{setting: True}))
    distances = [distance for pair in pairs for distance in crossings(pair)]
    assert distances
    if is_near:
        assert max(distances) <= 4
    else:
        assert max(distances) > 4
        # The verb, always second in its clause's order of phrases, ends it.
        endings = tuple(sum(lexicon.TARGET_VERB, ()))
        assert all(pair.target_words[-1].endswith(endings) for pair in pairs)


def test_reordering_leaves_the_source_as_it_was():
    plain, reordered = pairs_of(PLAIN), pairs_of(replace(PLAIN, local_reordering=True, long_reordering=True))
    assert [pair.source for pair in plain] == [pair.source for pair in reordered]
    assert [sorted(pair.target_words) for pair in plain] == [sorted(pair.target_words) for pair in reordered]


def test_fertility_makes_two_words_on_either_side():
    pairs = pairs_of(replace(PLAIN, fertility=0.3))
    one_to_many = sum(max(Counter(i for i, _ in pair.links).values()) > 1 for pair in pairs)
    many_to_one = sum(max(Counter(j for _, j in pair.links).values()) > 1 for pair in pairs)
    assert min(one_to_many, many_to_one) > 100
    gaps = [
        max(sources) - min(sources)
        for pair in pairs
        for target in range(len(pair.target_words))
        if len(sources := [i for i, j in pair.links if j == target]) > 1
    ]
    assert min(gaps) == 1, "some partners stand beside their word"
    assert max(gaps) > 1, "those of verbs stand behind the object"


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_words_without_counterpart_follow_their_share(share):
    pairs = pairs_of(replace(PLAIN, unaligned=share))
    words = Counter(word for pair in pairs for word in pair.source_words)
    nouns = sum(n for word, n in words.items() if len(word) > 3 and word[-1] in lexicon.VOWELS)
    # A noun with a determiner, one in four, has no article.
    assert words["la"] / nouns == pytest.approx(0.75 * share, abs=0.05)
    assert any(lexicon.SUBJECT_PARTICLE in pair.target_words for pair in pairs)


def test_context_decides_ambiguous_words():
    assert all(len(words) == 1 for words in linked_words(pairs_of(PLAIN)).values())
    pairs = pairs_of(replace(PLAIN, ambiguity=0.5, clauses=1), 3000)
    ambiguous = {word for word, targets in linked_words(pairs).items() if len(targets) > 1}
    assert len(ambiguous) > 10
    by_verb = defaultdict(set)
    for pair in pairs:
        verb = next(word for word in pair.source_words if word.endswith("t"))
        for i, j in pair.links:
            by_verb[pair.source_words[i], verb].add(pair.target_words[j])
    assert all(len(targets) == 1 for targets in by_verb.values())


def test_target_is_a_function_of_the_source():
    targets = defaultdict(set)
    for pair in pairs_of(LanguageSettings(stems=20, zipf=2.0, clauses=1), 20_000):
        targets[pair.source].add(pair.target)
    assert len(targets) < 15_000, "many sentences should come twice"
    assert all(len(several) == 1 for several in targets.values())


def test_inflection_agrees_across_words():
    pairs = pairs_of(replace(PLAIN, inflection=True, clauses=1))
    plural_verb = ("nt", "rn")
    for pair in pairs:
        first_noun = next(
            word
            for word in pair.source_words
            if len(word) > 3 and (word[-1] in lexicon.VOWELS or (word[-1] == "s" and word[-2] != "l"))
        )
        verb = next(word for word in pair.source_words if len(word) > 3 and word[-1] in "tnr")
        assert first_noun.endswith("s") == verb.endswith(plural_verb)


def test_adjectives_mirror_and_agree_with_their_noun():
    pairs = pairs_of(replace(PLAIN, inflection=True, local_reordering=True))
    gender_of = {"o": "first", "oi": "first", "e": "second", "ei": "second"}
    genders = defaultdict(set)
    seen_two = 0
    for pair in pairs:
        target_of = dict(pair.links)
        for noun, word in enumerate(pair.source_words):
            if len(word) > 3 and re.search("[aeiou]s?$", word):
                adjective = noun - 1
                while adjective >= 0 and re.search("ls?$", pair.source_words[adjective]):
                    assert target_of[adjective] - target_of[noun] == noun - adjective
                    assert pair.source_words[adjective].endswith("s") == word.endswith("s")
                    ending = re.search("[oe]i?$", pair.target_words[target_of[adjective]]).group()
                    assert ending.endswith("i") == word.endswith("s")
                    genders[word.removesuffix("s")].add(gender_of[ending])
                    seen_two += noun - adjective == 2
                    adjective -= 1
    assert seen_two > 50
    assert all(len(several) == 1 for several in genders.values())
    assert {"first"} in genders.values()
    assert {"second"} in genders.values()


def test_inflection_multiplies_words_and_leaves_stems_to_share():
    inflected, bare = pairs_of(SMALL, 3000), pairs_of(replace(SMALL, inflection=False), 3000)
    count = {
        name: len({word for pair in pairs for word in pair.target_words})
        for name, pairs in (("inflected", inflected), ("bare", bare))
    }
    assert count["inflected"] > 2 * count["bare"]
    seen = {word for pair in inflected[:1500] for word in pair.target_words}
    unseen = {word for pair in inflected[1500:] for word in pair.target_words} - seen
    assert len(unseen) > 20
    known_stems = {target_stem(word) for word in seen}
    assert np.mean([target_stem(word) in known_stems for word in unseen]) > 0.9


@pytest.mark.parametrize("exponent", [0.0, 1.0])
def test_stems_follow_zipfs_law(exponent):
    pairs = pairs_of(replace(PLAIN, stems=2000, zipf=exponent), 10_000)
    nouns = Counter(
        word for pair in pairs for word in pair.source_words if len(word) > 3 and word[-1] in lexicon.VOWELS
    )
    counts = np.array([n for _, n in nouns.most_common(200)])
    slope = np.polyfit(np.log(np.arange(1, 201)), np.log(counts), 1)[0]
    assert slope == pytest.approx(-exponent, abs=0.12)


def test_more_clauses_make_longer_sentences():
    one, three = (pairs_of(replace(SMALL, clauses=clauses)) for clauses in (1, 3))
    assert 2 * np.mean([len(p.source_words) for p in one]) < np.mean([len(p.source_words) for p in three]) + 1


def test_same_seed_same_sentences_in_another_process():
    code = (
        "from sightline.data.language import GeneratedLanguage\n"
        "for pair in GeneratedLanguage().pairs(50): print(pair.source, '|', pair.target, sorted(pair.links))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    here = "".join(f"{pair.source} | {pair.target} {sorted(pair.links)}\n" for pair in GeneratedLanguage().pairs(50))
    assert outputs == {here}


def test_splits_and_seeds_differ_and_a_shorter_corpus_is_a_beginning():
    assert pairs_of(SMALL, 10) == pairs_of(SMALL, 50)[:10]
    train, test = ({pair.source for pair in pairs_of(LanguageSettings(), 2000, split)} for split in ("train", "test"))
    assert len(train & test) < 5
    other = pairs_of(replace(SMALL, seed=1), 200)
    shared = {w for p in other for w in p.target_words} & {w for p in pairs_of(SMALL, 200) for w in p.target_words}
    assert len({word for word in shared if len(word) > 4}) < 5


@pytest.mark.parametrize(
    "wrong",
    [
        {"stems": 5},
        {"clauses": 0},
        {"zipf": -1.0},
        {"fertility": 1.5},
        {"unaligned": -0.1},
        {"ambiguity": 2.0},
    ],
)
def test_impossible_settings_are_refused_by_name(wrong):
    (name,) = wrong
    with pytest.raises(InputError, match=name):
        LanguageSettings(**wrong)


def test_thousands_of_words_come_quickly():
    start = time.process_time()
    pairs = GeneratedLanguage().pairs(20_000)
    assert time.process_time() - start < 10, "about 2 seconds; the bound is for slow and busy machines"
    assert len({word for pair in pairs for word in pair.source_words}) > 3000
    assert len({word for pair in pairs for word in pair.target_words}) > 3000
