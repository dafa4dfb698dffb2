// Explain: a sentence, its translation as it arrives with its links, and every question one can ask about it.

import { make, mount, download } from "./figure.js";
import { post, postForText, stream } from "./api.js";
import { Progress, changedWords, choice, copyMenu, offerMethods, side, textBox, words } from "./parts.js";
import { explainAsCommand, explainAsPython } from "./sharing.js";

const SENTENCES = {
  es: "El gato negro está durmiendo debajo de la mesa.",
  en: "The black cat is sleeping under the table.",
};
const DEFAULT_METHOD = "norms";
const SIDE_BY_SIDE = 4;
const CONTRAST = { method: "erasure", settings: { signed: true } };

export function explainView(place, context) {
  return new Explain(place, context).close;
}

class Explain {
  constructor(place, context) {
    this.context = context;
    const { values, model } = context;
    this.lang = model.languages.includes(values.lang) ? values.lang : model.languages[0] ?? null;
    this.source = values.text ?? SENTENCES[this.lang] ?? SENTENCES.en;
    this.given = values.target ?? "";
    this.methods = (values.methods ?? DEFAULT_METHOD).split(",").slice(0, SIDE_BY_SIDE);
    this.other = values.other ?? "";
    this.translating = new Progress();
    this.explaining = new Progress();
    this.asking = new Progress();
    this.build(place);
    this.translate();
    this.close = () => this.figure?.destroy();
  }

  body(extra = {}) {
    const lang = this.lang && this.lang !== this.context.model.languages[0] ? { source_lang: this.lang } : {};
    return { source: this.source, model: this.context.model.name, ...lang, ...extra };
  }

  save() {
    const { model } = this.context;
    this.context.save({
      text: this.source, target: this.given, other: this.other,
      lang: this.lang && this.lang !== model.languages[0] ? this.lang : "",
      methods: this.methods.join(",") === DEFAULT_METHOD ? "" : this.methods.join(","),
      figure: this.figureState ? JSON.stringify(this.figureState) : "",
    });
  }

  // Building

  build(place) {
    const { model } = this.context;
    const { box, element } = textBox({ label: "A sentence to translate", value: this.source, big: true, onPause: (text) => this.read(text) });
    this.box = box;
    const [from, to] = model.languages;
    const name = (lang) => new Intl.DisplayNames(["en"], { type: "language" }).of(lang);
    const direction = model.languages.length === 2 ? choice("Direction", [[from, `${name(from)} to ${name(to)}`], [to, `${name(to)} to ${name(from)}`]], this.lang, (lang) => this.turn(lang)) : null;
    this.figurePlace = make("figure", { class: "sightline" });
    this.wordPanel = make("section", { class: "panel-card word-panel", "aria-label": "About the word that is pinned", hidden: true });
    this.comparison = make("section", { class: "comparison", "aria-label": "Side by side" });
    this.otherModel = make("section", { class: "comparison", "aria-label": "Another model" });
    place.append(
      make("section", { class: "entry" }, element, make("div", { class: "entry-row" }, direction, this.givenTarget())),
      this.translating.element, this.figurePlace, this.asking.element, this.wordPanel,
      make("div", { class: "questions" }, this.methodPicker(), this.modelPicker(),
        copyMenu([["Copy as Python", () => explainAsPython(this.described())], ["Copy as command", () => explainAsCommand(this.described())]])),
      this.explaining.element, this.comparison, this.otherModel);
  }

  described() {
    const target = this.target && this.given ? { target: this.target } : {};
    return { source: this.source, ...target, method: this.methods[0], settings: {}, model: this.context.model.name, lang: this.body().source_lang };
  }

  givenTarget() {
    const { element, box } = textBox({ label: "A translation of your own", value: this.given, rows: 1, onPause: (text) => { this.given = text.trim(); this.translate(); } });
    this.givenBox = box;
    return make("details", { class: "given", open: Boolean(this.given) }, make("summary", {}, "Explain a translation of your own"), element);
  }

  methodPicker() {
    const list = make("div", { class: "method-list" });
    const offer = (method) => make("label", { class: "method-choice" },
      make("input", { type: "checkbox", name: "method", value: method.name, checked: this.methods.includes(method.name), onchange: (event) => this.choose(method.name, event.target) }),
      make("span", { class: "method-words" }, make("strong", {}, method.does), make("span", { class: "hint" }, `${method.name} · ${method.cost}`)));
    offerMethods(this.context, this.methods, list, offer);
    return make("details", { class: "ask methods" }, make("summary", {}, "Ask in another way"),
      make("p", { class: "hint" }, `Choose one, or up to ${SIDE_BY_SIDE} side by side with their faithfulness.`), list);
  }

  modelPicker() {
    const others = this.context.models.filter(({ name }) => name !== this.context.model.name);
    if (!others.length) return null;
    return choice("Compare with", [["", "no other model"], ...others.map(({ name, calibrated }) => [name, calibrated ? `${name} (calibrated)` : name])], this.other, (name) => {
      this.other = name;
      this.save();
      this.compareModels();
    });
  }

  // Reading and translating

  read(text) {
    if (text.trim() === this.source) return;
    this.source = text.trim();
    this.given = "";
    this.givenBox.value = "";
    this.translate();
  }

  turn(lang) {
    if (this.source === SENTENCES[this.lang]) {
      this.source = SENTENCES[lang];
      this.box.value = this.source;
    }
    this.lang = lang;
    this.given = "";
    this.translate();
  }

  /** Show the translation word by word, then what the chosen method says about it. */
  translate() {
    this.save();
    this.clearWord();
    if (!this.source) return;
    this.translating.run(async (signal, isLatest) => {
      if (this.given) {
        this.target = this.given;
      } else {
        const [target, links] = [[], []];
        const source = words(this.source);
        for await (const [kind, data] of stream("/api/translate", this.body(), signal)) {
          if (!isLatest()) return;
          if (kind === "done") { this.target = data.text; continue; }
          target.push(data.word);
          for (const [from, confidence] of data.links) links.push([from, data.number, confidence]);
          await this.show({ method: "", source: side(source), target: side([...target]), links: [...links] }, { compact: true, animate: true });
        }
      }
      if (!this.target) return;
      await this.explain(signal, isLatest);
      if (isLatest()) this.compareModels();
    });
  }

  async show(picture, options) {
    const same = this.figure && this.shownCompact === Boolean(options.compact);
    if (!same) {
      this.figure?.destroy();
      this.shownCompact = Boolean(options.compact);
      const state = this.context.values.figure && !options.compact ? JSON.parse(this.context.values.figure) : {};
      this.figure = mount(this.figurePlace, picture, {
        ...options, state: this.figureState ?? state,
        saves: [{ name: "HTML", save: (one) => this.saveAsPage(one) }, { name: "Pharaoh", save: () => this.saveLinks() }],
        onPin: (focus, figure) => { if (!options.compact) this.ask(focus, figure); },
        onChange: ({ pins, ...state }) => { this.figureState = state; this.save(); },
      });
      await this.figure.ready;
    } else {
      await this.figure.update(picture);
    }
    if (!options.compact) this.figurePlace.dataset.explained = this.methods[0];
  }

  async explain(signal, isLatest) {
    const [first, ...rest] = this.methods;
    const ask = (method) => post("/api/explain", this.body({ target: this.target, method }), signal);
    const why = await ask(first);
    if (!isLatest()) return;
    await this.show(why, {});
    await this.compareMethods(why, rest, ask, isLatest, signal);
  }

  choose(name, box) {
    const chosen = box.checked ? [...this.methods, name] : this.methods.filter((one) => one !== name);
    if (chosen.length > SIDE_BY_SIDE || !chosen.length) { box.checked = !box.checked; return; }
    this.methods = chosen;
    this.save();
    this.explaining.run((signal, isLatest) => this.explain(signal, isLatest));
  }

  // Side by side

  async compareMethods(why, rest, ask, isLatest, signal) {
    if (!rest.length) { this.comparison.replaceChildren(); return; }
    const others = await Promise.all(rest.map(ask));
    if (!isLatest()) return;
    const title = (name) => this.context.methods.find((one) => one.name === name)?.does ?? name;
    const cards = [why, ...others].map((one) => {
      const figure = make("figure", { "data-method": one.method });
      mount(figure, one, { compact: true, heading: title(one.method) });
      return figure;
    });
    const table = make("div", { class: "measures" }, make("p", { class: "hint" }, "Measuring how faithful they are …"));
    this.comparison.replaceChildren(make("h2", {}, "Side by side"), make("div", { class: "cards" }, ...cards), table);
    const found = await post("/api/faithfulness", this.body({ target: this.target, methods: [...this.methods, "random"] }), signal);
    if (isLatest()) table.replaceChildren(measures(found));
  }

  compareModels() {
    if (!this.other) { this.otherModel.replaceChildren(); return; }
    const figure = make("figure", {});
    const progress = new Progress();
    this.otherModel.replaceChildren(make("h2", {}, "Two models"), make("div", { class: "cards" }, this.thisModel(), figure), progress.element);
    progress.run(async (signal) => {
      const body = this.body({ model: this.other });
      const { text, source_words: source, target_words: target, links } = await post("/api/translate", body, signal);
      await mount(figure, { method: "alignment", source: side(source), target: side(target), links }, { compact: true, heading: this.other }).ready;
      figure.dataset.text = text;
      figure.append(changes(this.target, text));
    });
  }

  thisModel() {
    const figure = make("figure", {});
    post("/api/align", this.body({ target: this.target })).then(({ alignments: [pair] }) => mount(figure, {
      method: "alignment", source: side(pair.source_words), target: side(pair.target_words), links: pair.links,
    }, { compact: true, heading: this.context.model.name })).catch((error) => figure.append(make("p", { class: "problem" }, error.message)));
    return figure;
  }

  // A word

  clearWord() {
    this.wordPanel.hidden = true;
    this.wordPanel.replaceChildren();
  }

  ask(focus, figure) {
    this.clearWord();
    if (!focus) return;
    const { view } = figure;
    if (focus.row !== null) {
      const { word } = view.rowLabels[focus.row];
      if (word !== null) this.askWhy(word, this.target.split(/\s+/)[word]);
    } else if (focus.column !== null && !view.columnLabels[focus.column].prefix) {
      const { word } = view.columnLabels[focus.column];
      if (word !== null) this.offerStrike(word);
    }
  }

  /** What else the model could have written for a word, and what speaks for which. */
  askWhy(position, word) {
    this.asking.run(async (signal, isLatest) => {
      const { alternatives } = await post("/api/contrast", this.body({ target: this.target, position }), signal);
      if (!isLatest()) return;
      const answer = make("div", { class: "contrast" });
      const compare = (other) => this.contrast(position, word, other, answer);
      const listed = alternatives.filter(({ text }) => text !== word).slice(0, 6).map(({ text, probability }) => make("button", {
        type: "button", class: "alternative", onclick: () => compare(text),
      }, make("bdi", {}, text), make("span", { class: "hint" }, ` ${percent(probability)}`)));
      const box = make("input", { type: "text", "aria-label": "Another word", placeholder: "another word", size: 12, maxlength: 60 });
      const own = alternatives.find(({ text }) => text === word);
      this.wordPanel.replaceChildren(
        make("h2", {}, "Why ", make("bdi", {}, `“${word}”`), "?"),
        make("p", {}, own ? `The model gave it ${percent(own.probability)}. ` : "", "Compare it with what it could have written instead:"),
        make("form", { class: "alternatives", onsubmit: (event) => { event.preventDefault(); if (box.value.trim()) compare(box.value.trim()); } }, ...listed, box, make("button", { type: "submit" }, "Compare")),
        answer);
      this.wordPanel.hidden = false;
    });
  }

  contrast(position, word, contrast, answer) {
    this.asking.run(async (signal, isLatest) => {
      const { attribution } = await post("/api/contrast", this.body({ target: this.target, position, contrast, ...CONTRAST }), signal);
      if (!isLatest()) return;
      const figure = make("figure", { class: "contrast-figure" });
      answer.replaceChildren(make("p", { class: "hint" }, "Blue words speak for ", make("bdi", {}, `“${word}”`), ", orange ones for ", make("bdi", {}, `“${contrast}”`), ": what changes when each is left out."), figure);
      mount(figure, attribution, { compact: true, heading: `Why “${word}”, not “${contrast}”` });
    });
  }

  /** Take a source word away and see the translation change. */
  offerStrike(position) {
    const list = words(this.source);
    const answer = make("div", { class: "struck" });
    this.wordPanel.replaceChildren(
      make("h2", {}, make("bdi", {}, `“${list[position]}”`)),
      make("button", { type: "button", class: "strike", onclick: () => this.strike(list, position, answer) }, "Strike it out and see what changes"),
      answer);
    this.wordPanel.hidden = false;
  }

  strike(list, position, answer) {
    this.asking.run(async (signal, isLatest) => {
      const rest = list.filter((_, index) => index !== position);
      const { text } = await post("/api/translate", { ...this.body(), source: rest.join(" ") }, signal);
      if (!isLatest()) return;
      answer.replaceChildren(
        make("p", { class: "struck-source" }, ...list.flatMap((word, index) => [index === position ? make("del", {}, word) : word, " "])),
        changes(this.target, text));
    });
  }

  // Saving

  async saveAsPage(figure) {
    await this.explaining.run(async () => download("sightline.html", await postForText("/api/page", { attribution: figure.asDictionary() }), "text/html"));
  }

  async saveLinks() {
    await this.explaining.run(async () => {
      const { alignments: [{ links }] } = await post("/api/align", this.body({ target: this.target }));
      download("sightline.align", `${links.map(([from, to]) => `${from}-${to}`).join(" ")}\n`, "text/plain");
    });
  }
}

const percent = (share) => `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;

function changes(before, after) {
  const marked = changedWords(before, after);
  const any = marked.some(([, changed]) => changed) || words(before).length !== marked.length;
  return make("p", { class: "changed", dir: "auto" }, ...marked.flatMap(([word, changed]) => [changed ? make("ins", {}, word) : word, " "]),
    make("span", { class: "hint" }, any ? "" : "(nothing changes)"));
}

function measures(found) {
  const cell = (measure) => make("td", {}, measure.mean === null ? "–" : measure.mean.toFixed(3));
  const header = ["Method", "Comprehensiveness", "Sufficiency", "Agreement with leaving out"];
  return make("div", { class: "sightline table" }, make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Faithfulness" }, make("table", {},
    make("thead", {}, make("tr", {}, ...header.map((name) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, ...found.map((one) => make("tr", {}, make("th", { scope: "row" }, one.method), cell(one.comprehensiveness), cell(one.sufficiency), cell(one.correlation)))))),
  make("p", { class: "meaning" }, "Comprehensiveness (high is good): how much less likely the output is without the words named. Sufficiency (low is good): how much less likely with them alone. random ranks words by chance."));
}
