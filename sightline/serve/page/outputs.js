// Classify and Continue: one output or a continuation, and the words that speak for it.

import { make, mount, download } from "./figure.js";
import { post, postForText, stream } from "./api.js";
import { Progress, choice, copyMenu, offerMethods, side, textBox, words } from "./parts.js";
import { explainAsCommand, explainAsPython } from "./sharing.js";

const REVIEW = "The film is slow at first, but the actors are wonderful and I loved the end.";
const PROMPT = "The cat sees the bird and";

/** Offer the methods that this model has, by their sentences. */
function methodChoice(context, chosen, change) {
  const element = choice("Ask", [], chosen, change);
  offerMethods(context, [chosen], element.querySelector("select"), ({ name, does, cost }) => make("option", { value: name, selected: name === chosen }, `${does} (${cost})`));
  return element;
}

const pageSave = (progress) => ({ name: "HTML", save: (figure) => progress.run(async () => download("sightline.html", await postForText("/api/page", { attribution: figure.asDictionary() }), "text/html")) });
const percent = (share) => `${(share * 100).toFixed(1)} %`;

export function classifyView(place, context) {
  const { values, model } = context;
  const progress = new Progress();
  const bars = make("ul", { class: "bars" });
  const figure = make("figure", { class: "sightline" });
  let source = values.text ?? REVIEW;
  let method = values.method ?? "erasure";
  let label = values.label ?? "";
  let drawn = null;

  const settings = () => ("signed" in (context.methods.find(({ name }) => name === method)?.settings ?? {}) ? { signed: true } : {});
  const box = textBox({ label: "A text to classify", value: source, rows: 3, big: true, onPause: (text) => { source = text.trim(); label = ""; classify(); } });

  function classify() {
    context.save({ text: source === REVIEW ? "" : source, method: method === "erasure" ? "" : method, label });
    if (!source) return;
    progress.run(async (signal, isLatest) => {
      const body = { source, model: model.name, method, settings: settings(), ...(label ? { target: label } : {}) };
      const why = await post("/api/explain", body, signal);
      const shown = why.target.tokens[0];
      const { alternatives } = await post("/api/contrast", { source, model: model.name, target: shown }, signal);
      if (!isLatest()) return;
      bars.replaceChildren(...[...alternatives].sort((a, b) => b.probability - a.probability).map(({ text, probability }) => {
        const bar = make("span", { class: "bar", "aria-hidden": "true" });
        bar.style.setProperty("--value", probability.toFixed(4));
        return make("li", {}, make("button", { type: "button", "aria-pressed": String(text === shown), onclick: () => { label = text; classify(); } }, text), bar, make("span", {}, percent(probability)));
      }));
      if (drawn) await drawn.update(why);
      else drawn = mount(figure, why, { saves: [pageSave(progress)] });
      figure.dataset.label = shown;
    });
  }

  const described = () => ({ source, ...(label ? { target: label } : {}), method, settings: settings(), model: model.name });
  place.append(make("section", { class: "entry" }, box.element, make("div", { class: "entry-row" }, methodChoice(context, method, (name) => { method = name; classify(); }))),
    progress.element, make("p", { class: "hint" }, "How likely each label is; choose one to see what speaks for it."), bars, figure,
    copyMenu([["Copy as Python", () => explainAsPython(described())], ["Copy as command", () => explainAsCommand(described())]]));
  classify();
  return () => drawn?.destroy();
}

export function continueView(place, context) {
  const { values, model } = context;
  const progress = new Progress();
  const figure = make("figure", { class: "sightline" });
  let source = values.text ?? PROMPT;
  let target = values.target ?? "";
  let method = values.method ?? "attention";
  let drawn = null;
  let arriving = false;
  let written = null; // the model's own continuation, once it is there: another method explains the same one
  const box = textBox({ label: "A text to continue", value: source, rows: 2, big: true, onPause: (text) => { source = text.trim(); target = ""; own.box.value = ""; written = null; go(); } });
  const own = textBox({ label: "A continuation of your own", value: target, rows: 1, onPause: (text) => { target = text.trim(); go(); } });

  async function show(picture, options) {
    if (drawn && arriving === Boolean(options.compact)) { await drawn.update(picture); return; }
    drawn?.destroy();
    arriving = Boolean(options.compact);
    drawn = mount(figure, picture, { layout: "flow", ...options });
    await drawn.ready;
  }

  /** Let the model write, and show each word as it arrives. */
  async function write(signal, isLatest) {
    const arrived = [];
    delete figure.dataset.explained;
    for await (const [kind, data] of stream("/api/continue", { source, model: model.name }, signal)) {
      if (!isLatest()) return;
      if (kind === "done") { written = data; continue; }
      arrived.push(data.word);
      await show({ method: "", source: side(words(source)), target: side([...arrived]), links: [] }, { compact: true, animate: true });
    }
  }

  function go() {
    context.save({ text: source === PROMPT ? "" : source, target, method: method === "attention" ? "" : method });
    if (!source) return;
    progress.run(async (signal, isLatest) => {
      if (!target && !written) await write(signal, isLatest);
      if (!isLatest()) return;
      const explained = target || written?.target;
      const why = await post("/api/explain", { source, model: model.name, method, ...(explained ? { target: explained } : {}) }, signal);
      if (!isLatest()) return;
      await show(why, { saves: [pageSave(progress)] });
      figure.dataset.explained = method;
    });
  }

  const described = () => ({ source, ...(target ? { target } : {}), method, settings: {}, model: model.name });
  place.append(make("section", { class: "entry" }, box.element, make("div", { class: "entry-row" },
    methodChoice(context, method, (name) => { method = name; go(); }),
    make("details", { class: "given", open: Boolean(target) }, make("summary", {}, "Explain a continuation of your own"), own.element))),
  progress.element, figure, copyMenu([["Copy as Python", () => explainAsPython(described())], ["Copy as command", () => explainAsCommand(described())]]));
  go();
  return () => drawn?.destroy();
}
