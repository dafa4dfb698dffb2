// What is on the page as Python and as a command, to go on with elsewhere.

const python = (value) => {
  if (value === true) return "True";
  if (value === false) return "False";
  return value === null ? "None" : JSON.stringify(value);
};
const shell = (text) => (/^[\w./:=,-]+$/.test(text) ? text : `'${String(text).replaceAll("'", "'\\''")}'`);
const named = (settings) => Object.entries(settings).map(([name, value]) => `, ${name}=${python(value)}`).join("");
const loaded = ({ model, lang }) => `model = sightline.load(${python(model)}${lang ? `, source_lang=${python(lang)}` : ""})`;
const chosen = ({ model, lang }) => `${model === "en-es" ? "" : ` -m ${shell(model)}`}${lang ? ` --source-lang ${shell(lang)}` : ""}`;

export function explainAsPython(what) {
  const target = what.target ? `, ${python(what.target)}` : "";
  return ["import sightline", "", loaded(what),
    `why = sightline.explain(model, ${python(what.source)}${target}, method=${python(what.method)}${named(what.settings ?? {})})`,
    "why.words().without_special().show()", ""].join("\n");
}

export function explainAsCommand(what) {
  const settings = Object.entries(what.settings ?? {}).map(([name, value]) => ` -s ${shell(`${name}=${value}`)}`).join("");
  return `sightline explain${chosen(what)} --method ${shell(what.method)}${settings} ${shell(what.source)}${what.target ? ` ${shell(what.target)}` : ""}\n`;
}

export const alignAsPython = (what) => ["import sightline", "", loaded(what),
  `sources = ${JSON.stringify(what.sources, null, 4)}`, `targets = ${JSON.stringify(what.targets, null, 4)}`,
  "for links in sightline.align(model, sources, targets):", "    print(links)", ""].join("\n");

export const alignAsCommand = (what) => `sightline align${chosen(what)} source.txt target.txt -o links.align\n`;

export const tagsAsPython = (what) => ["import sightline", "", loaded(what), `print(sightline.translate_markup(model, ${python(what.source)}))`, ""].join("\n");
export const tagsAsCommand = (what) => `echo ${shell(what.source)} | sightline tags${chosen(what)} -\n`;
