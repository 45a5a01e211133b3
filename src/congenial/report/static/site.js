// Finds numbers in the tables of all releases of a site: words in, rows with their intervals out, each linked to its report.
"use strict";
(async () => {
  const block = document.getElementById("rows");
  if (!block || !window.DecompressionStream) return;
  const { text } = Charts, { make, plainly } = Rows, MOST_TABLES = 4, MOST_ROWS = 12, $ = (id) => document.getElementById(id);
  const tables = (await Rows.unpacked(block)).releases.flatMap((release) => release.tables.map((_, at) => ({ release, at, shown: Rows.open(release, at) })));
  const begins = (said, word) => plainly(said).some((part) => part.startsWith(word));

  // Where the words lead in a table: for each axis the levels that most words fit; null if a word fits nothing there.
  function places({ release, shown }, words) {
    const fits = shown.axes.map((axis) => axis.levels.map((level) => words.filter((word) => begins(level, word))));
    const fitting = new Set(fits.flat(2));
    const said = [release.title, release.release, shown.noun, ...shown.axes.map((axis) => axis.title)].join(" ");
    if (!words.every((word) => fitting.has(word) || begins(said, word))) return null;
    const chosen = fits.map((levels) => {
      const most = Math.max(...levels.map((found) => found.length));
      return most === 0 ? null : levels.flatMap((found, place) => found.length === most ? [place] : []);
    });
    return { chosen, open: chosen.filter((levels) => levels === null).length, met: fitting.size };
  }

  function cells(shown, chosen) {
    return shown.axes.reduce((before, axis, k) =>
      before.flatMap((at) => (chosen[k] || axis.levels.map((_, place) => place)).map((place) => [...at, place])), [[]]);
  }

  function section({ release, shown, chosen }) {
    const found = cells(shown, chosen), head = [...shown.axes.map((axis) => axis.title), shown.heading, `${release.level} interval`, "how far to trust it", "report"];
    const rows = found.slice(0, MOST_ROWS).map((at) => {
      const cell = Rows.cellOf(shown, at), number = Rows.point(shown, cell);
      return make("tr", {}, ...Rows.labelsOf(shown, cell).map((label) => make("td", {}, label)), make("td", { class: "number" }, text(number.value)),
        make("td", { class: "number" }, Rows.between(number)),
        make("td", {}, number.flag && number.flag !== "exact" ? Rows.sign(number.flag) : ""), make("td", {}, make("a", { href: release.report + Rows.link(shown, at) }, "open")));
    });
    const left = found.length - rows.length;
    return make("div", {}, make("h3", {}, `${shown.words}: ${release.title}`),
      make("div", { class: "wide", tabindex: "0" }, make("table", {}, make("thead", {}, make("tr", {}, ...head.map((title, k) => make("th", { scope: "col", class: k === shown.axes.length || k === shown.axes.length + 1 ? "number" : "" }, title)))), make("tbody", {}, ...rows))),
      left > 0 ? make("p", { class: "soft" }, `${text(left)} more rows are in `, make("a", { href: release.report + Rows.link(shown, found[0]) }, "its report"), ".") : null);
  }

  function answer() {
    const words = plainly($("search").value);
    const found = words.length === 0 ? [] : tables.map((table) => ({ ...table, ...places(table, words) })).filter((one) => one.chosen);
    // Most words met by labels, then fewest axes left open, then the release that its publisher quotes.
    found.sort((a, b) => b.met - a.met || a.open - b.open || b.release.quoted - a.release.quoted);
    $("answer").replaceChildren(...found.slice(0, MOST_TABLES).map(section));
    $("count").textContent = words.length === 0 ? "" : found.length === 0 ? "No table has all of these words."
      : found.length > MOST_TABLES ? `The ${MOST_TABLES} nearest of ${text(found.length)} tables.` : `${text(found.length)} table${found.length > 1 ? "s" : ""}.`;
  }

  let waiting;
  $("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => {
    history.replaceState(null, "", "#" + encodeURIComponent($("search").value));
    answer();
  }, 120); });
  function follow() {
    try { $("search").value = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    answer();
  }
  addEventListener("hashchange", follow);
  document.documentElement.classList.add("live");
  follow();
  document.documentElement.dataset.ready = "yes";
})();
