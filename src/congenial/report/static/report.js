// The report's own script: an answer with its interval, a chart that follows it, all rows to sort and search.
// Everything it shows is in the data block of the page. It makes nodes, never markup, and asks no network.
"use strict";
(async () => {
  const block = document.getElementById("rows");
  if (!block || !window.DecompressionStream) return;
  const data = await Rows.unpacked(block);
  const PAGE = 50, MOST_DOTS = 40, MOST_CHOICES = 300, { text } = Charts, { make, cellOf, placeOf, labelsOf, point, between, sign, plainly } = Rows, $ = (id) => document.getElementById(id);
  const dark = () => matchMedia("(prefers-color-scheme: dark)").matches && !matchMedia("print").matches;
  const state = { table: 0, at: [], across: null, as: null, shade: "value", page: 0, sort: null, down: false, words: "", columns: [] };

  // ---- numbers ------------------------------------------------------------------------------------------------------------

  const opened = new Map();
  function table(at = state.table) {
    if (!opened.has(at)) opened.set(at, Rows.open(data, at));
    return opened.get(at);
  }

  // ---- the question -------------------------------------------------------------------------------------------------------

  function choose(at, more = []) {
    const before = table(), kept = new Map([...before.axes.map((axis, k) => [axis.name, state.at[k]]), ...more]);
    state.table = at;
    state.at = table().axes.map((axis) => Math.min(kept.get(axis.name) ?? 0, axis.levels.length - 1));
    Object.assign(state, { page: 0, sort: null, down: false, across: null, as: null });
    question();
    renew();
  }

  const ALL = "all";
  const over = (names) => data.tables.findIndex((one) => one.of === data.tables[state.table].of && one.axes.length === names.length && names.every((name) => one.axes.includes(name)));

  // A list of levels, with "all" where a table without this axis is there; `at` undefined: all.
  function picker(axis, at, pick, without) {
    const id = `pick-${axis.name}`, label = make("label", { for: id }, axis.title), all = without >= 0 ? 1 : 0;
    const taken = (place) => place < 0 ? choose(without) : pick(place);
    if (axis.levels.length <= MOST_CHOICES) {
      const list = make("select", { id, onchange: (event) => taken(event.target.selectedIndex - all) });
      if (all) list.append(make("option", { selected: at === undefined }, ALL));
      axis.levels.forEach((level, place) => list.append(make("option", { selected: place === at }, level)));
      return make("div", {}, label, list);
    }
    const options = make("datalist", { id: `${id}-list` });
    const offer = (said) => options.replaceChildren(...[...(all ? [ALL] : []),
      ...axis.levels.filter((level) => level.toLowerCase().includes(said.toLowerCase())).slice(0, 50)].map((level) => make("option", { value: level })));
    const field = make("input", { id, list: `${id}-list`, autocomplete: "off", placeholder: "type a name",
      oninput: (event) => {
        const place = axis.levels.indexOf(event.target.value);
        if (place >= 0) taken(place);
        else if (all && event.target.value === ALL) taken(-1);
        else offer(event.target.value);
      }, onfocus: (event) => event.target.select() });
    field.value = at === undefined ? ALL : axis.levels[at];
    return make("div", {}, label, field, options);
  }

  function question() {
    const focus = document.activeElement && document.activeElement.id, names = data.tables[state.table].axes;
    const tables = make("select", { id: "pick-table", onchange: (event) => choose(event.target.selectedIndex) });
    data.tables.forEach((one, at) => tables.append(make("option", { selected: at === state.table }, one.words)));
    const first = make("div", {}, make("label", { for: "pick-table" }, "Table"), tables);
    const own = table().axes.map((axis, k) => picker(axis, state.at[k], (place) => { state.at[k] = place; renew(); },
      over(names.filter((name) => name !== axis.name))));
    const further = Object.keys(data.axes).filter((name) => !names.includes(name) && over([...names, name]) >= 0).map((name) =>
      picker({ name, ...data.axes[name] }, undefined, (place) => choose(over([...names, name]), [[name, place]]), state.table));
    $("choices").replaceChildren(...(data.tables.length > 1 ? [first] : []), ...own, ...further);
    if (focus && focus.startsWith("pick-") && $(focus)) $(focus).focus();
  }

  const link = () => Rows.link(table(), state.at);

  function follow() {  // the question in the address, if there is one
    if (!location.hash.startsWith("#find?")) return false;
    const asked = new URLSearchParams(location.hash.slice(6));
    const at = data.tables.findIndex((one) => one.axes.join(",") === asked.get("table") && one.of === asked.get("of"));
    if (at < 0) return false;
    state.table = at;
    state.at = table().axes.map((axis) => Math.max(0, (axis.codes || axis.levels).indexOf(asked.get(axis.name))));
    return true;
  }

  // ---- the answer ---------------------------------------------------------------------------------------------------------

  const inWords = (level) => level.replace(/^(\d[\d.,]*)\+$/, "$1 or more").replace(/^(\d+)-(\d+)$/, "$1 to $2");  // "85+" as somebody says it
  const spoken = () => table().axes.map((axis, k) => `${axis.title}: ${axis.ordered ? inWords(axis.levels[state.at[k]]) : axis.levels[state.at[k]]}`).join(", ") || "everybody";
  const group = () => table().axes.map((axis, k) => `${axis.title}: ${axis.levels[state.at[k]]}`).join(", ") || "everybody";
  function sentence(one) {
    const of = `${table().noun} (${spoken()})`, source = `Source: ${data.cite}.`;
    const number = table().noun.startsWith("sum of ") ? `${of}: ` : "", people = number ? "" : ` ${of}`;
    if (one.exact) return `${number}${number ? "exactly" : "Exactly"} ${text(one.value)}${people}. ${source}`;
    if (one.low === undefined) return `${number}${number ? "about" : "About"} ${text(one.value)}${people}; its margin of error is not known. ${source}`;
    if (one.value === 0 && one.low >= 0) return number ? `${number}${between(one)} (${data.level} sure). ${source}` : `${between(one)[0].toUpperCase()}${between(one).slice(1)} ${of} (${data.level} sure). ${source}`;
    if (one.flag === "too uncertain") return `The number of ${of} is too uncertain to quote: between ${text(one.low)} and ${text(one.high)} (${data.level} interval). ${source}`;
    return `${number}${number ? "about" : "About"} ${text(one.value)}${people}, very likely between ${text(one.low)} and ${text(one.high)} (${data.level} interval). ${source}`;
  }

  async function copy(said, button) {
    try { await navigator.clipboard.writeText(said); } catch {
      const area = make("textarea", { readOnly: true });
      area.value = said;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    const before = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 1500);
  }
  const copier = (words, said) => make("button", { type: "button", onclick: (event) => copy(said(), event.target) }, words);

  function answer() {
    const shown = table(), cell = cellOf(shown, state.at), one = point(shown, cell), said = one.flag;
    const number = one.value === 0 && !one.exact && one.low !== undefined && one.low >= 0 ? between(one).replace("probably f", "F").replace("probably a", "A") : text(one.value);
    const second = one.exact ? "This number is exact: it follows from figures that were published without noise."
      : one.low === undefined ? "Its margin of error depends on the confidential data and is not known; see How to use them."
      : number !== text(one.value) ? `with ${data.level} probability; a printed 0 does not mean none`
      : `very likely between ${text(one.low)} and ${text(one.high)} (${data.level} interval${one.high - one.value === one.value - one.low ? ", ±" + text(one.high - one.value) : ""})`;
    const details = make("dl", {});
    for (const { key, title } of data.columns) if (key in shown.read) details.append(make("dt", {}, title), make("dd", {}, plain(shown.read[key][cell])));
    $("answer").replaceChildren(
      make("p", { class: "group" }, group()),
      make("p", { class: "figure" }, make("output", {}, number), " ", said ? sign(said) : null),
      make("p", { class: "reach" }, second),
      make("p", { class: "quote", id: "sentence" }, sentence(one)),
      make("p", { class: "buttons" }, copier("Copy sentence", () => sentence(one)), copier("Copy citation", () => `${data.cite}.`),
        copier("Copy link", () => location.href.split("#")[0] + link()), make("a", { href: link() }, "Link to this answer")),
      details.childElementCount ? make("details", { open: state.columns.length > 0 }, make("summary", {}, "For analysts"), details) : "");
  }
  const plain = (value) => value === null || value === undefined ? "-" : text(value);

  // ---- the chart ----------------------------------------------------------------------------------------------------------

  const isSex = (axis) => axis.levels.length === 2 && /\b(sex|gender|geschlecht|sexe|sexo)\b/i.test(`${axis.name} ${axis.title}`);
  function choices() {
    const found = [];
    table().axes.forEach((axis, k) => {
      if (axis.levels.length < 2) return;
      if (data.map && data.map.axis === axis.name) found.push({ k, as: "map", words: `${axis.title}: map` });
      const sexed = axis.ordered && axis.levels.length > 3 && table().axes.some(isSex);
      if (sexed) found.push({ k, as: "pyramid", words: `${axis.title}: pyramid` });
      found.push({ k, as: axis.ordered && axis.levels.length > 3 ? "lines" : "dots", words: axis.title });
    });
    const rank = ({ as, k }) => ["pyramid", "map", "lines", "dots"].indexOf(as) * 1000 - Math.min(MOST_DOTS, table().shape[k]);
    return { found, best: [...found].sort((a, b) => rank(a) - rank(b))[0] };
  }

  const nouns = () => table().noun[0].toUpperCase() + table().noun.slice(1);
  function spec() {
    const { found, best } = choices(), shown = table();
    const { k, as } = found.find((one) => one.k === state.across && one.as === state.as) || best || {};
    if (as === undefined) return null;
    [state.across, state.as] = [k, as];
    const axis = shown.axes[k], others = shown.axes.map((_, at) => at).filter((at) => at !== k);
    const along = (fixed) => axis.levels.map((_, place) => point(shown, cellOf(shown, state.at.map((now, at) => at === k ? place : fixed[at] ?? now))));
    const split = as === "pyramid" ? others.find((at) => isSex(shown.axes[at]))
      : as === "lines" ? others.find((at) => shown.shape[at] > 1 && shown.shape[at] < 6) : undefined;
    const series = split === undefined ? [{ name: "", points: along({}) }]
      : shown.axes[split].levels.map((name, place) => ({ name, points: along({ [split]: place }) }));
    const rest = others.filter((at) => at !== split).map((at) => shown.axes[at].levels[state.at[at]]);
    const title = [`${axis.title}${split === undefined ? "" : " and " + shown.axes[split].title}`, ...rest].join(", ");
    const made = { kind: as, title: `${nouns()}: ${title}`, across: axis.title, unit: nouns(), labels: axis.levels, series, at: state.at[k],
      uneven: axis.uneven, words: `Chart of ${nouns().toLowerCase()} by ${title}, with ${data.level} intervals; the numbers are in the rows below.` };
    if (as === "map") Object.assign(made, { shapes: data.map, levels: axis.codes || axis.levels, shade: state.shade });
    if (as === "dots" && axis.levels.length > MOST_DOTS) {
      const order = series[0].points.map((_, at) => at).sort((a, b) => series[0].points[b].value - series[0].points[a].value);
      const kept = order.slice(0, MOST_DOTS);
      if (!kept.includes(state.at[k])) kept[MOST_DOTS - 1] = state.at[k];
      Object.assign(made, { labels: kept.map((at) => axis.levels[at]), at: kept.indexOf(state.at[k]), cut: `The largest ${MOST_DOTS} of ${text(axis.levels.length)}. `,
        series: [{ name: "", points: kept.map((at) => series[0].points[at]) }] });
    }
    return made;
  }

  function chart() {
    const drawn = spec(), box = $("chart");
    $("figure").hidden = drawn === null;
    if (drawn === null) return;
    box.replaceChildren(Charts.draw(drawn, Math.min(720, Math.max(300, box.clientWidth)), dark()));
    const list = make("select", { id: "pick-chart", onchange: (event) => {
      const taken = choices().found[event.target.selectedIndex];
      [state.across, state.as] = [taken.k, taken.as];
      chart();
    } });
    for (const one of choices().found) list.append(make("option", { selected: one.k === state.across && one.as === state.as }, one.words));
    const name = `${data.release}-${drawn.title}`.replace(/[^A-Za-z0-9]+/g, "-").slice(0, 80);
    const shades = drawn.kind === "map" && drawn.series[0].points.some((one) => one.low !== undefined);
    const shade = shades ? make("button", { type: "button", onclick: () => { state.shade = state.shade === "value" ? "margin" : "value"; chart(); } },
      state.shade === "value" ? "Show margins of error" : "Show numbers") : null;
    $("chart-tools").replaceChildren(make("label", { for: "pick-chart" }, "Compare by "), list, ...(shade ? [shade] : []),
      ...["png", "svg", "csv"].map((kind) => make("button", { type: "button", onclick: () => Charts[kind](drawn, name) }, kind.toUpperCase())));
    const marks = { dots: "Bars are", lines: "Bands are", pyramid: "Thin bars are", map: "Shades show the number; margins of error are on request, as" }[drawn.kind];
    $("caption").textContent = `${drawn.cut || ""}${table().ends ? `${marks} ${data.level} intervals. ` : ""}`
      + `${drawn.series.some((one) => one.points.some((p) => p.exact)) && drawn.kind !== "map" ? "Hollow marks, or bars without an interval, are exact. " : ""}`
      + `${drawn.uneven ? "The classes are not equally wide." : ""}`;
  }

  // ---- all rows -----------------------------------------------------------------------------------------------------------

  function sifted() {
    const shown = table(), cells = [];
    const known = shown.axes.map((axis) => axis.levels.map(plainly));  // a word of a row begins with every word asked for
    const tests = plainly(state.words).map((word) => known.map((levels) => levels.map((parts) => parts.some((part) => part.startsWith(word)))));
    for (let cell = 0; cell < shown.size; cell++)
      if (tests.every((axes) => axes.some((fits, k) => fits[placeOf(shown, cell, k)]))) cells.push(cell);
    if (state.sort === null) return cells;
    const key = state.sort, values = typeof key === "string" ? shown.read[key] : null;
    const of = key === "interval" ? (cell) => { const one = point(shown, cell); return one.low === undefined ? 0 : one.high - one.low; }
      : key === "flag" ? (cell) => ["exact", "reliable", "use with care", "too uncertain", ""].indexOf(shown.flag(cell))
      : values ? (cell) => values[cell] ?? -Infinity : (cell) => placeOf(shown, cell, key);
    cells.sort((a, b) => of(a) - of(b) || a - b);
    return state.down ? cells.reverse() : cells;
  }

  let listed = [];
  function rows(anew = true) {
    const shown = table();
    if (anew) listed = sifted();
    const pages = Math.max(1, Math.ceil(listed.length / PAGE));
    state.page = Math.min(Math.max(0, state.page), pages - 1);
    const extra = state.columns.length ? data.columns.filter(({ key }) => key in shown.read) : [];
    const interval = shown.ends || shown.flags !== "";
    const heads = [...shown.axes.map((axis, k) => [k, axis.title, ""]), ["base", shown.heading, "number"],
      ...(interval ? [["interval", `${data.level} interval`, "number ends"], ["flag", "how far to trust it", ""]] : []), ...extra.map(({ key, title }) => [key, title, "number"])];
    const head = make("tr", {}, ...heads.map(([key, title, kind]) => {
      const way = state.sort === key ? (state.down ? "descending" : "ascending") : "none";
      return make("th", { scope: "col", class: kind, "aria-sort": way }, make("button", { type: "button", onclick: () => {
        state.down = state.sort === key ? !state.down : typeof key === "string" && key !== "flag";
        [state.sort, state.page] = [key, 0];
        rows();
        $("table").querySelectorAll("th button")[heads.findIndex(([one]) => one === key)].focus();
      } }, title, way === "none" ? "" : way === "ascending" ? " ▲" : " ▼"));
    }));
    const body = make("tbody", {});
    const chosen = cellOf(shown, state.at);
    for (const cell of listed.slice(state.page * PAGE, (state.page + 1) * PAGE)) {
      const one = point(shown, cell), said = one.flag;
      body.append(make("tr", { class: cell === chosen ? "chosen" : "" }, ...labelsOf(shown, cell).map((label) => make("td", {}, label)),
        make("td", { class: "number" }, text(one.value)),
        ...(interval ? [make("td", { class: "number ends" }, between(one)), make("td", { class: "trust" }, said && said !== "exact" ? sign(said) : "")] : []),
        ...extra.map(({ key }) => make("td", { class: "number" }, plain(shown.read[key][cell])))));
    }
    $("table").replaceChildren(make("table", {}, make("thead", {}, head), body));
    $("count").textContent = listed.length ? `Rows ${text(state.page * PAGE + 1)} to ${text(Math.min(listed.length, (state.page + 1) * PAGE))} of ${text(listed.length)}` : "No row has these words.";
    [$("back").disabled, $("on").disabled] = [state.page === 0, state.page >= pages - 1];
    const file = $("file");
    file.textContent = shown.file;
    file.href = shown.file;
  }
  function saveRows() {
    const shown = table(), keys = Object.keys(shown.read).filter((key) => key !== "base");
    Charts.table([...shown.axes.map((axis) => axis.name), shown.heading, ...keys],
      listed.map((cell) => [...labelsOf(shown, cell), shown.read.base[cell], ...keys.map((key) => shown.read[key][cell])]), `${data.release}-rows`);
  }

  function renew() {
    answer();
    chart();
    rows();
  }

  let waiting;
  $("search").addEventListener("input", (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { [state.words, state.page] = [event.target.value, 0]; rows(); }, 120);
  });
  $("analysts").addEventListener("change", (event) => { state.columns = event.target.checked ? data.columns : []; answer(); rows(false); });
  $("back").addEventListener("click", () => { state.page -= 1; rows(false); });
  $("on").addEventListener("click", () => { state.page += 1; rows(false); });
  $("save").addEventListener("click", saveRows);
  addEventListener("hashchange", () => { if (follow()) { question(); renew(); $("find").scrollIntoView(); } });
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(chart, 150); });
  for (const media of ["(prefers-color-scheme: dark)", "print"]) matchMedia(media).addEventListener("change", chart);

  document.documentElement.classList.add("live");
  const linked = follow();
  if (!linked) {
    state.table = data.tables.filter((one) => one.of === data.tables[0].of).length - 1;  // the finest, so that every choice is in sight
    state.at = table().axes.map(() => 0);
  }
  question();
  renew();
  if (linked) $("find").scrollIntoView();
  document.documentElement.dataset.ready = "yes";
})();
