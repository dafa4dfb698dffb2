"""Where the markup of a source belongs in its translation, by the word alignment.

An element covers the words that its own words are aligned to, within the element around it: the stretch where its links
weigh most, less those of other words between them. Elements that stand side by side do not overlap; those that make up
all of what is around them do so in the translation. A mark stands at the boundary of a sentence or clause where it did
so in the source, and else beside the same word. Punctuation belongs inside an element where it did so in the source.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from itertools import accumulate, pairwise
from typing import NamedTuple

from sightline.alignment.marked_sentence import Sentence, Span
from sightline.alignment.markup import Element, Mark, Part
from sightline.alignment.word_parts import boundary_after, count_inside

FOREIGN = 0.5  # what a link of other words counts against an element that would cover it
WINDOW = 8  # as many source words on either side of a mark decide where it goes


class Place(NamedTuple):
    """The target words of something, and of these the characters that it covers; words may be covered in part."""

    words: Span
    characters: Span


def place_children(element: Element, place: Place, sentence: Sentence) -> list[Place]:
    """Find the place of each child of an element, within the place of the element."""
    placing = _Placing(element, place, sentence)
    placing.place_parts()
    placing.place_by_links()
    placing.take_unlinked_words()
    placing.place_what_is_left()
    placing.close_gaps()
    return placing.places()


class _Placing:
    """The children of an element on their way to their places."""

    def __init__(self, element: Element, place: Place, sentence: Sentence) -> None:
        self.element, self.place, self.sentence = element, place, sentence
        self.span = place.words
        self.parts: dict[int, Place] = {}  # children that cover a part of a word
        self.spans: dict[int, Span] = {}
        self.taken: list[Span] = []  # in order
        self.with_words = [number for number, child in enumerate(element.children) if child.start < child.stop]

    def _take(self, number: int, span: Span) -> None:
        self.spans[number] = span
        if span[0] < span[1]:
            insort(self.taken, span)

    # Parts of words

    def place_parts(self) -> None:
        """Mark the same letters where the translation has them, in a word that has the same ones before or after."""
        in_words: dict[int, list[Span]] = {}
        for number, child in enumerate(self.element.children):
            if child.part is None or (isinstance(child, Mark) and not child.text.startswith("<")):
                continue
            for word in self._candidates(child.start):
                found = self._find_part(child.start, child.part, word)
                others = in_words.setdefault(word, [])
                if found and _is_free(found, others):
                    insort(others, found)
                    self.parts[number] = Place((word, word + 1), found)
                    break
        self.taken = sorted((word, word + 1) for word in {place.words[0] for place in self.parts.values()})

    def _candidates(self, source: int) -> list[int]:
        """List the target words that a source word is linked to, the surest first, then those that are the same."""
        links = self.sentence.links[source]
        same = self.sentence.same_words.get(self.sentence.source[source][slice(*self.sentence.cores[0][source])], -1)
        words = dict.fromkeys([*sorted(links, key=lambda target: -links[target]), same])
        return [target for target in words if self.span[0] <= target < self.span[1]]

    def _find_part(self, source_number: int, part: Part, number: int) -> Span | None:
        """Find the characters of a target word that are as the marked ones of a source word."""
        source, core = self.sentence.source[source_number], self.sentence.cores[0][source_number]
        word, own = self.sentence.target.words[number], self.sentence.cores[1][number]
        marked = source[part.start : part.stop]
        if source[slice(*core)] == word[slice(*own)] and core[0] <= part.start and part.stop <= core[1]:
            start = own[0] + part.start - core[0]
        elif marked and part.stop == core[1] and word[: own[1]].endswith(marked):
            start = own[1] - len(marked)
        elif marked and part.start == core[0] and word[own[0] :].startswith(marked):
            start = own[0]
        elif marked and part.start >= core[1] and word[own[1] :].endswith(marked):
            start = len(word) - len(marked)
        else:
            return None
        offsets, first = self.sentence.target.offsets[number], self.sentence.target.begins[number]
        at = bisect_left(offsets, start), bisect_left(offsets, start + len(marked))
        if offsets[at[0]] != start or offsets[at[1]] != start + len(marked):
            return None  # within a placeholder
        found = first + at[0], first + at[1]
        within = self.place.characters
        return found if within[0] <= found[0] and found[1] <= within[1] else None

    # Whole words

    def place_by_links(self) -> None:
        """Assign to each child with words the stretch where it has most; those with most links choose first."""
        element, sentence, span = self.element, self.sentence, self.span
        children = {number: element.children[number] for number in self.with_words if number not in self.parts}
        weights = {number: sentence.weigh(child.start, child.stop, span) for number, child in children.items()}
        total = sentence.weigh(element.start, element.stop, span)
        owners: dict[int, int] = {}
        for number, own in weights.items():
            for target, weight in own.items():
                if target not in owners or weight > weights[owners[target]][target]:
                    owners[target] = number
        linked, owned = sorted(total), sorted(owners)
        sums = [0.0, *accumulate(total[target] for target in linked)]
        for number in sorted(weights, key=lambda number: -sum(weights[number].values())):
            child, own = children[number], weights[number]
            if child.start <= element.start and element.stop <= child.stop:
                if span[0] < span[1]:
                    self._take(number, span)
                continue
            best: tuple[float, int, int] | None = None
            value, start, last = 0.0, -1, -1
            for target in sorted(target for target in own if owners[target] == number and self._is_free(target)):
                foreign = total[target] - own[target]
                gain = own[target] - foreign
                between = sums[bisect_left(linked, target)] - sums[bisect_right(linked, last)]
                is_open = start >= 0 and bisect_left(owned, target) == bisect_right(owned, last)
                is_open = is_open and _is_free((last, target + 1), self.taken)
                if is_open and value - FOREIGN * between > 0:
                    value += gain - FOREIGN * between
                else:
                    value, start = gain, target
                last = target
                if best is None or value > best[0]:
                    best = value, start, target + 1
            if best:
                self._take(number, best[1:])

    def _is_free(self, word: int) -> bool:
        """Return whether no child has a target word."""
        return _is_free((word, word + 1), self.taken)

    def take_unlinked_words(self) -> None:
        """Let children have unlinked target words beside their own: one for each unlinked word at the same edge.

        Those up to the end of a sentence or clause belong to the child before them if the source goes on with a linked
        word: nothing else can have become them.
        """
        links = self.sentence.links
        for number, old in list(self.spans.items()):
            child, (start, stop) = self.element.children[number], old
            first, last = child.start, child.stop - 1
            while (
                first < last and not links[first] and self._is_unlinked(start - 1) and not self._ends_clause(start - 1)
            ):
                start, first = start - 1, first + 1
            while first < last and not links[last] and self._is_unlinked(stop) and not self._ends_clause(stop - 1):
                stop, last = stop + 1, last - 1
            end = stop
            if child.stop == len(links) or links[child.stop] or boundary_after(self.sentence.source[child.stop - 1]):
                while self._is_unlinked(end) and not self._ends_clause(end - 1):
                    end += 1
            if end == self.span[1] or self._ends_clause(end - 1):
                stop = end
            if (start, stop) != old:
                del self.taken[bisect_left(self.taken, old)]
                self._take(number, (start, stop))

    def _is_unlinked(self, word: int) -> bool:
        """Return whether a target word is within the element, and neither a link nor a child has it."""
        is_inside = self.span[0] <= word < self.span[1]
        return is_inside and word not in self.sentence.linked_targets and self._is_free(word)

    def _ends_clause(self, word: int) -> bool:
        return boundary_after(self.sentence.target.words[word]) != ""

    def place_what_is_left(self) -> None:
        """Find a place for children without links, and for those without words."""
        free = [(start, stop - 1) for start, stop in self._gaps() if start < stop]
        for number in self.with_words:
            if free and number not in self.spans and number not in self.parts:
                start, stop = self._nearest_words(self.element.children[number], free)
                self._take(number, (start, stop))
                gap = bisect_right(free, (start, self.span[1])) - 1
                left = (free[gap][0], start - 1), (stop, free[gap][1])
                free[gap : gap + 1] = [one for one in left if one[0] <= one[1]]
        gaps = self._gaps()
        for number, child in enumerate(self.element.children):
            if number not in self.spans and number not in self.parts:
                at = _nearest_in(gaps, self._boundary(child))
                self.spans[number] = at, at

    def _gaps(self) -> list[Span]:
        """List what is left between the children that have words; it may be no word, but a place."""
        edges = [self.span[0], *(edge for one in self.taken for edge in one), self.span[1]]
        return list(zip(edges[::2], edges[1::2], strict=True))

    def _nearest_words(self, child: Element | Mark, free: list[Span]) -> Span:
        """Find words for a child whose own have no links: unlinked ones there, or those of a word beside it.

        `free` has the first and last words of each stretch that no other child has.
        """
        beside = self.sentence.linked_beside(child.start, child.stop, self.element, self.span)
        for _, side, target in beside:
            words: list[int] = []
            while len(words) < child.stop - child.start and self._is_unlinked(target - side * (len(words) + 1)):
                words.append(target - side * (len(words) + 1))
            if words:
                return min(words), max(words) + 1
        words = [target for _, _, target in beside if self._is_free(target)]
        if not words:
            words = [_nearest_in(free, self._beside(child))]
        # The longer one, since a word that says much is longer than one that joins others.
        best = max(words, key=lambda target: len(self.sentence.target.words[target]))
        return best, best + 1

    def close_gaps(self) -> None:
        """Where children make up all of their element, let them do so in the translation."""
        children = [self.element.children[number] for number in self.with_words]
        inner = (edge for child in children for edge in (child.start, child.stop))
        edges = [self.element.start, *inner, self.element.stop]
        if self.parts or not children or any(left < right for left, right in list(pairwise(edges))[::2]):
            return
        placed = sorted((span, number) for number, span in self.spans.items() if span[0] < span[1])
        if not placed:
            return
        starts = [self.span[0]]
        for (left, _), (right, _) in pairwise(placed):
            ended = [word for word in range(left[1], right[0] + 1) if self._ends_clause(word - 1)]
            starts.append(ended[-1] if ended else left[1])
        for (_, number), span in zip(placed, pairwise([*starts, self.span[1]]), strict=True):
            self.spans[number] = span

    # What covers no words

    def _boundary(self, child: Element | Mark) -> int:
        """Find the boundary between target words for something that covers none."""
        at, element, span = child.start, self.element, self.span
        if at <= element.start:
            return span[0]
        if at >= element.stop:
            return span[1]
        kind = boundary_after(self.sentence.source[at - 1])
        if kind == "pause" and child.glued_right and not child.glued_left:
            kind = ""
        if not kind:
            ends_a_line = isinstance(child, Mark) and child.ends_a_line and child.glued_left
            return self._best_cut(at, None) if ends_a_line else self._beside(child)
        sources, targets = (side[kind] for side in self.sentence.boundaries)
        first, least = bisect_right(sources, element.start), bisect_right(targets, span[0])
        count, most = bisect_left(sources, element.stop) - first, bisect_left(targets, span[1])
        if kind == "end" and count == most - least:
            return targets[least + bisect_left(sources, at) - first]
        return self._best_cut(at, (targets, least, most) if least < most else None)

    def _best_cut(self, at: int, allowed: tuple[list[int], int, int] | None) -> int:
        """Find the boundary that parts links best: of the words before a source boundary, and of those after it.

        Only those from one number to before another of a list of boundaries may be `allowed`.
        """
        links = [
            (source < at, target, confidence)
            for source in range(max(self.element.start, at - WINDOW), min(self.element.stop, at + WINDOW))
            for target, confidence in self.sentence.links[source].items()
            if self.span[0] <= target < self.span[1]
        ]
        cuts = {target + 1 for _, target, _ in links} or {self._beside(Mark("", at))}
        if allowed is not None:
            boundaries, least, most = allowed
            numbers = [bisect_left(boundaries, cut, least, most) for cut in cuts]
            cuts = {boundaries[n] for number in numbers for n in (number - 1, number) if least <= n < most}

        def agreement(cut: int) -> float:
            return sum((confidence for is_before, target, confidence in links if is_before == (target < cut)), 0.0)

        return max(sorted(cuts), key=agreement)

    def _beside(self, child: Element | Mark) -> int:
        """Find the place of something: beside the same word as in the source, by preference the one after it."""
        if child.start <= self.element.start or child.stop >= self.element.stop:
            return self.span[0] if child.start <= self.element.start else self.span[1]
        prefers_left = child.glued_left and (not child.glued_right or isinstance(child, Mark))
        beside = self.sentence.linked_beside(child.start, child.stop, self.element, self.span)
        if not beside:
            share = (child.start - self.element.start) / (self.element.stop - self.element.start)
            return self.span[0] + round(share * (self.span[1] - self.span[0]))
        _, side, target = min(beside, key=lambda one: (one[0], one[1] if prefers_left else -one[1]))
        return target + (side < 0)

    # Characters

    def places(self) -> list[Place]:
        """Return the place of each child, with the punctuation that belongs to it."""
        return [
            self.parts[number] if number in self.parts else self._with_edges(child, self.spans[number])
            for number, child in enumerate(self.element.children)
        ]

    def _with_edges(self, child: Element | Mark, span: Span) -> Place:
        target, (least, most) = self.sentence.target, self.place.characters
        if isinstance(child, Mark) or span[0] == span[1]:
            at = min(max(target.begins[span[0]], least), most)
            return Place(span, (at, at))
        core, end = target.core_ends[span[1] - 1], target.begins[span[1]]
        stop = core + count_inside(target.characters[core:end], *child.tail)
        begin, core = target.begins[span[0]], target.core_begins[span[0]]
        start = core - count_inside(target.characters[begin:core][::-1], *child.lead)
        is_all = child.is_block or (child.start <= self.element.start and self.element.stop <= child.stop)
        if is_all and not child.tail.outside:
            stop = end
        if is_all and not child.lead.outside:
            start = begin
        for number in range(begin, core):
            if number in target.partners:  # ¿ and ¡ go with the sign that closes
                start = min(start, number) if target.partners[number] < stop else max(start, number + 1)
        start, stop = min(max(start, least), most), min(max(stop, least), most)
        return Place(span, (start, max(start, stop)))


def _is_free(span: Span, taken: list[Span]) -> bool:
    """Return whether a span overlaps none of those that are taken, which are in order and do not overlap."""
    number = bisect_left(taken, (span[1], span[1]))
    return number == 0 or taken[number - 1][1] <= span[0]


def _nearest_in(gaps: list[Span], wanted: int) -> int:
    """Find the place in one of several gaps, which are in order, that is nearest to the one that is wanted."""
    number = bisect_right(gaps, (wanted, wanted))
    near = gaps[max(number - 1, 0) : number + 1]
    return min((min(max(wanted, start), stop) for start, stop in near), key=lambda at: abs(at - wanted))
