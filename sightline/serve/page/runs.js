// Runs and studies: their curves, their verdicts, and a slider that replays attention as it forms.

import { make, mount } from "./figure.js";
import { get } from "./api.js";
import { Progress, choice, side } from "./parts.js";

const PLAY_EVERY = 450; // milliseconds

export function runsView(place, context) {
  const { runs, values } = context;
  const progress = new Progress();
  const shown = make("div", { class: "run" });
  let playing = null;
  const stop = () => { clearInterval(playing); playing = null; };

  function show(number) {
    stop();
    context.save({ run: number });
    progress.run(async (signal, isLatest) => {
      const run = await get(`/api/runs/${number}`);
      if (!isLatest()) return;
      shown.replaceChildren(make("h2", {}, run.title), ...(run.claims.length ? [claims(run.claims)] : []), ...run.frames.map(replay), ...run.plots.map(plot));
      if (!run.plots.length && !run.frames.length) shown.append(make("p", { class: "hint" }, "There is nothing to draw yet."));
    });
  }

  /** A drawing as an image: whatever it holds cannot act. */
  const plot = ({ title, note, svg }) => make("figure", { class: "sightline" },
    make("img", { class: "run-plot", alt: `${title}. ${note}`, src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}` }),
    ...(note ? [make("figcaption", { class: "hint" }, note)] : []));

  function replay(story) {
    const titles = [...new Set(story.frames.flatMap(({ tables }) => tables.map(({ title }) => title)))];
    const figures = titles.map((title) => ({ title, element: make("figure", {}), drawn: null }));
    const label = make("output", {});
    const slider = make("input", { type: "range", min: 0, max: story.frames.length - 1, value: story.frames.length - 1, "aria-label": story.label, oninput: () => draw(Number(slider.value)) });
    const button = make("button", { type: "button", onclick: () => {
      if (playing) { stop(); button.textContent = "Play"; return; }
      button.textContent = "Stop";
      let at = 0;
      playing = setInterval(() => {
        slider.value = String(at);
        draw(at);
        at += 1;
        if (at >= story.frames.length) { stop(); button.textContent = "Play"; }
      }, PLAY_EVERY);
    } }, "Play");
    const draw = (at) => {
      const frame = story.frames[at];
      label.textContent = `${story.label} ${frame.name}`;
      for (const one of figures) {
        const table = frame.tables.find(({ title }) => title === one.title);
        if (!table) continue;
        const picture = { method: one.title, source: side(table.columns), target: side(table.rows), scores: table.values };
        if (one.drawn) one.drawn.update(picture);
        else one.drawn = mount(one.element, picture);
      }
    };
    draw(story.frames.length - 1);
    return make("section", { class: "replay", "aria-label": story.title }, make("h2", {}, story.title), make("div", { class: "slider" }, button, slider, label),
      make("div", { class: "cards" }, ...figures.map(({ element }) => element)), make("p", { class: "hint" }, story.note ?? ""));
  }

  function claims(list) {
    const row = (claim) => make("tr", {}, make("td", {}, `${claim.id}: ${claim.text}`), make("td", {}, claim.verdict), make("td", {}, claim.ours ?? "–"), make("td", {}, claim.paper ?? "–"));
    return make("div", { class: "sightline table" }, make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Claims" }, make("table", {},
      make("thead", {}, make("tr", {}, ...["Claim", "Verdict", "Here", "Paper"].map((name) => make("th", { scope: "col" }, name)))), make("tbody", {}, ...list.map(row)))));
  }

  const first = values.run !== undefined && Number(values.run) < runs.length ? Number(values.run) : 0;
  place.append(choice("Show", runs.map(({ name, kind }, number) => [String(number), `${name} (${kind})`]), String(first), (number) => show(Number(number))), progress.element, shown);
  show(first);
  return stop;
}
