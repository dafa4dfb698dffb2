// Align: two texts, their words linked; the least certain lines first, links corrected by dragging, the error rate as one goes.

import { make, mount, download } from "./figure.js";
import { Refusal, post } from "./api.js";
import { Progress, choice, copyMenu, side, textBox } from "./parts.js";
import { alignAsCommand, alignAsPython } from "./sharing.js";

const EXAMPLE = {
  source: "I left my keys at home.\nShe gets up at six every morning.\nThe white house has a red door.",
  target: "Dejé mis llaves en casa.\nElla se levanta a las seis cada mañana.\nLa casa blanca tiene una puerta roja.",
};
const SHOWN = 40;
const SHARED = 3000; // characters; longer texts are not put into the address
const same = ([a, b], [c, d]) => a === c && b === d;

export function alignView(place, context) {
  const { values, model } = context;
  const progress = new Progress();
  const scoring = new Progress();
  const list = make("ol", { class: "pairs" });
  const rate = make("p", { class: "rate", role: "status" });
  let pairs = [];
  let sorted = values.order !== "text";
  let shown = SHOWN;

  const lines = (box) => box.value.replace(/\n+$/, "").split("\n");
  const boxOf = (label, value, rows = 4) => textBox({ label, value, rows, drop: true });
  const source = boxOf("One text, a sentence a line (or drop a file)", values.source ?? EXAMPLE.source);
  const target = boxOf("Its translation, line by line", values.target ?? EXAMPLE.target);
  const gold = boxOf("Gold links, if there are any: lines such as 0-0 1-2 2p1", values.gold ?? "", 2);
  let base = values.base === "1" ? 1 : 0;

  const save = () => {
    const texts = { source: source.box.value, target: target.box.value, gold: gold.box.value };
    const short = Object.values(texts).join("").length <= SHARED && texts.source !== EXAMPLE.source;
    context.save({ ...(short ? texts : {}), order: sorted ? "" : "text", base: base || "" });
  };

  const readGold = (line, pair, number) => {
    const links = [...line.matchAll(/(\d+)([-p])(\d+)/g)].map(([, from, kind, to]) => [Number(from) - base, Number(to) - base, kind]);
    const inside = (position, words) => position >= 0 && position < words.length;
    if (!links.every(([from, to]) => inside(from, pair.source_words) && inside(to, pair.target_words))) {
      throw new Refusal(`Line ${number + 1} of the gold links names a word that is not there: are words counted from ${1 - base}?`);
    }
    return { sure: links.filter(([, , kind]) => kind === "-").map(([a, b]) => [a, b]), possible: links.map(([a, b]) => [a, b]) };
  };

  function align() {
    save();
    return progress.run(async (signal, isLatest) => {
      const [sources, targets] = [lines(source.box), lines(target.box)];
      const { alignments } = await post("/api/align", { source: sources, target: targets, model: model.name }, signal);
      if (!isLatest()) return;
      const goldLines = gold.box.value.trim() ? lines(gold.box) : [];
      if (goldLines.length > alignments.length) {
        throw new Refusal(`There are more lines of gold links (${goldLines.length}) than of text (${alignments.length}): give as many.`);
      }
      pairs = alignments.map((pair, number) => ({
        ...pair, number, links: pair.links, corrected: null, checked: false,
        gold: number < goldLines.length ? readGold(goldLines[number], pair, number) : null,
        lowest: Math.min(1, ...pair.links.map(([, , confidence]) => confidence)),
      }));
      shown = SHOWN;
      show();
      score();
    });
  }

  function show() {
    const order = sorted ? [...pairs].sort((a, b) => a.lowest - b.lowest) : pairs;
    list.replaceChildren(...order.slice(0, shown).map(card));
    if (order.length > shown) {
      list.append(make("li", {}, make("button", { type: "button", onclick: () => { shown += SHOWN; show(); } }, `Show more of the ${order.length} lines`)));
    }
  }

  function card(pair) {
    const figure = make("figure", {});
    const check = make("input", { type: "checkbox", checked: pair.checked, onchange: (event) => { pair.checked = event.target.checked; item.classList.toggle("checked", pair.checked); score(); } });
    const note = make("span", { class: "hint" });
    const item = make("li", { class: `pair${pair.checked ? " checked" : ""}`, "data-line": pair.number },
      make("div", { class: "pair-head" }, make("span", { class: "hint" }, `line ${pair.number + 1}, lowest confidence ${pair.lowest.toFixed(2)}`), note, make("label", { class: "choice" }, check, "These links are right")), figure);
    const picture = () => ({
      method: "alignment", source: side(pair.source_words), target: side(pair.target_words), links: pair.corrected ?? pair.links, ...(pair.gold ? { gold: pair.gold } : {}),
    });
    const drawn = mount(figure, picture(), { compact: true, onLink: (from, to) => {
      const links = pair.corrected ?? pair.links;
      pair.corrected = links.some((link) => same(link, [from, to])) ? links.filter((link) => !same(link, [from, to])) : [...links, [from, to, 1]];
      pair.checked = true;
      check.checked = true;
      item.classList.add("checked");
      drawn.clear();
      drawn.update(picture());
      tellErrors();
      score();
    } });
    const tellErrors = () => {
      if (!pair.gold) { note.textContent = pair.corrected ? "corrected" : ""; return; }
      const links = pair.corrected ?? pair.links;
      const wrong = links.filter((link) => !pair.gold.possible.some((one) => same(one, link))).length;
      const missed = pair.gold.sure.filter((one) => !links.some((link) => same(one, link))).length;
      note.textContent = wrong || missed ? `${wrong} wrong (dashed), ${missed} missed (dotted)` : "as in the gold alignment";
    };
    tellErrors();
    return item;
  }

  /** Measure the model's links against what the reader says is right, or against gold links. */
  function score() {
    const judged = pairs.filter(({ gold: right, checked }) => right || checked);
    const usable = judged.filter(({ gold: right, corrected, links }) => (right ? right.sure : corrected ?? links).length);
    if (!usable.length) { rate.textContent = ""; return; }
    scoring.run(async (signal, isLatest) => {
      const plain = (links) => links.map(([from, to]) => [from, to]);
      const body = {
        links: usable.map(({ links }) => plain(links)),
        gold: usable.map(({ gold: right, corrected, links }) => plain(right ? right.sure : corrected ?? links)),
        possible: usable.map(({ gold: right }) => plain(right ? right.possible : [])),
      };
      const found = await post("/api/score", body, signal);
      if (isLatest()) rate.textContent = `Alignment error rate of the model on ${usable.length} ${usable.length === 1 ? "line" : "lines"}: ${found.AER.value.toFixed(1)} %`;
    });
  }

  const linksNow = () => pairs.map(({ corrected, links }) => [...(corrected ?? links)].sort((a, b) => a[0] - b[0] || a[1] - b[1]));
  const asPharaoh = () => linksNow().map((links) => links.map(([from, to]) => `${from}-${to}`).join(" ")).join("\n");
  const asLines = () => pairs.map((pair, index) => JSON.stringify({ links: linksNow()[index], source_length: pair.source_words.length, target_length: pair.target_words.length })).join("\n");
  const described = () => ({ model: model.name, sources: lines(source.box), targets: lines(target.box) });

  place.append(
    make("div", { class: "two" }, source.element, target.element),
    make("details", { class: "given", open: Boolean(values.gold) }, make("summary", {}, "Compare with gold links"), gold.element,
      choice("Words are counted from", [["0", "0"], ["1", "1"]], String(base), (chosen) => { base = Number(chosen); save(); })),
    make("div", { class: "actions" },
      make("button", { type: "button", class: "main", onclick: align }, "Align"),
      make("label", { class: "choice" }, make("input", { type: "checkbox", checked: sorted, onchange: (event) => { sorted = event.target.checked; save(); show(); } }), "Least certain first"),
      make("button", { type: "button", "data-save": "Pharaoh", onclick: () => download("links.align", `${asPharaoh()}\n`, "text/plain") }, "Save as Pharaoh"),
      make("button", { type: "button", "data-save": "JSON", onclick: () => download("links.jsonl", `${asLines()}\n`, "application/json") }, "Save as JSON lines"),
      copyMenu([["Copy as Python", () => alignAsPython(described())], ["Copy as command", () => alignAsCommand(described())]])),
    make("p", { class: "hint" }, matchMedia("(hover: none)").matches
      ? "Drag a word to its counterpart to link or unlink them; a finger beside the words scrolls the page."
      : "Drag a word to its counterpart to link or unlink them; or click one and Shift-click the other."),
    progress.element, scoring.element, rate, list);
  align();
}
