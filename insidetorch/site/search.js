// The page of the search: it fetches the parts of the index that a query needs, and lists places.
"use strict";
(() => {
  const script = document.currentScript, folder = script.dataset.index;
  const field = document.getElementById("it-query");
  const list = document.querySelector(".it-found"), said = document.querySelector(".it-found-count");
  const PAGE = 10, BEST = 40;
  // The index is in scripts, since a page opened as a file may load no other data.
  const waiting = {}, fetched = {};
  window.insideSearch = (name, data) => waiting[name](data);
  const fetchPart = (name) => fetched[name] ??= new Promise((done, failed) => {
    waiting[name] = done;
    const part = document.createElement("script");
    part.src = `${folder}${name}.js`;
    part.onerror = () => { delete fetched[name]; failed(new Error(name)); };
    document.head.append(part);
  });

  // Words as insidetorch/site/search.py makes them.
  const stem = (word) => word.toLowerCase().replace(/(?<=[a-z]{3})(?:ings?|ed|es|(?<!s)s|e)$/, "").slice(0, 40);
  const words = (text, stop) => {
    const found = new Map();
    for (const word of text.match(/[\u3400-\u9fff]+|[\p{L}\p{N}_]+/gu) || []) {
      if (/[\u3400-\u9fff]/.test(word)) {
        for (let at = 0; at < Math.max(word.length - 1, 1); at++) found.set(word.slice(at, at + 2), []);
        continue;
      }
      const parts = word.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+/g) || [];
      const whole = stem(word);
      if (!stop.includes(whole)) found.set(whole, parts.length > 1 ? parts.filter((part) => part.length > 1).map(stem) : []);
    }
    return [...found].slice(0, 16);
  };

  // The parts of the words from `start` on that may hold a word, or words that begin with it.
  const partsOf = (starts, word) => {
    let first = 0;
    while (first + 1 < starts.length && starts[first + 1] <= word) first++;
    let last = first;
    while (last + 1 < starts.length && starts[last + 1].startsWith(word) && last < first + 1) last++;
    return Array.from({ length: last - first + 1 }, (_, at) => `t${first + at}`);
  };
  // Of each place that has a word: how much of the text it is, and how much of the title.
  const number = (letter) => letter.charCodeAt(0) - 65;
  const decode = (text) => {
    const places = new Map();
    let at = 0;
    for (const [, step, much, long] of text.matchAll(/([0-9a-z]+)([A-Z])([A-Z]?)/g))
      places.set(at += parseInt(step, 36), [(number(much) + 1) / 26, long ? 1 / Math.max(number(long), 1) : 0]);
    return places;
  };
  const better = (found, place, much, named) => {
    const [last, before] = found.get(place) || [0, 0];
    found.set(place, [Math.max(much, last), Math.max(named, before)]);
  };
  const lookUp = async (about, word) => {
    const parts = await Promise.all(partsOf(about.t, word).map(fetchPart));
    const found = new Map();
    for (const part of parts) for (const [key, text] of Object.entries(part)) {
      const share = key === word ? 1 : word.length > 2 && key.startsWith(word) ? 0.6 * word.length / key.length : 0;
      if (share) decode(text).forEach(([much, named], place) => better(found, place, share * much, share * named));
    }
    return found;
  };
  const match = async (about, [whole, parts]) => {
    const found = await lookUp(about, whole);
    if (!parts.length) return found;
    const others = await Promise.all(parts.map((part) => lookUp(about, part)));
    others[0]?.forEach((_, place) => {
      const all = others.map((one) => one.get(place) || [0, 0]);
      const [much, named] = [0, 1].map((at) => Math.min(...all.map((one) => one[at])));
      if (much) better(found, place, 0.4 * much, parts.length * named);
    });
    return found;
  };

  const find = async (query) => {
    const about = await fetchPart("index");
    const asked = words(query, about.stop);
    const matched = await Promise.all(asked.map((word) => match(about, word)));
    const weights = matched.map((one) => Math.log(1 + about.count / (1 + one.size)));
    const total = weights.reduce((sum, one) => sum + one, 0);
    const scores = new Map();
    matched.forEach((one, at) => one.forEach(([much, named], place) => {
      const score = scores.get(place) || { sum: 0, covered: 0, asked: 0, named: 0 };
      scores.set(place, score);
      score.sum += much * weights[at];
      score.covered += weights[at] / total;
      score.asked += named && weights[at] / total;  // how much of the query the title has
      score.named += named;                         // how much of the title the query is
    }));
    const rank = ({ sum, covered, asked, named }) => sum * covered ** 2 * (1 + asked ** 2 * (0.5 + 1.5 * Math.min(named, 1)));
    const ranked = [...scores].map(([place, score]) => [place, rank(score)])
      .sort((one, other) => other[1] - one[1]);
    return { about, ranked };
  };
  const detail = async (about, place) => {
    let part = 0;
    while (part + 1 < about.p.length && about.p[part + 1] <= place) part++;
    const [kind, doc, anchor, title, note] = (await fetchPart(`p${part}`))[place];
    const [name, page] = about.docs[doc];
    return { kind: about.kinds[kind], address: `${name}.html#${anchor}`, page, title, note };
  };

  const element = (name, text, parent, kind) => {
    const made = document.createElement(name);
    made.textContent = text;
    if (kind) made.className = kind;
    parent.append(made);
    return made;
  };
  const item = (place) => {
    const made = document.createElement("li");
    element("a", place.title, made).href = place.address;
    element("p", [place.kind, place.page].join(" · "), made, "it-found-where");
    if (place.note) element("p", place.note, made);
    return made;
  };
  let last = 0;
  const search = async () => {
    const query = field.value.trim(), turn = ++last;
    history.replaceState(null, "", query ? `?q=${encodeURIComponent(query)}` : location.pathname);
    if (!query) { list.replaceChildren(); said.textContent = ""; return; }
    try {
      const { about, ranked } = await find(query);
      let shown = 0;
      const addresses = new Set();  // a question and the section that answers it are one place
      const more = async () => {
        const next = await Promise.all(ranked.slice(shown, shown + PAGE).map(([place]) => detail(about, place)));
        if (turn !== last) return;
        if (!shown) list.replaceChildren();
        list.querySelector(".it-more")?.remove();
        for (const place of next) if (!addresses.has(place.address)) {
          addresses.add(place.address);
          list.append(item(place));
        }
        shown += next.length;
        said.textContent = ranked.length ? `${Math.min(ranked.length, BEST)}${ranked.length > BEST ? " best" : ""} places` : `No place has “${query}”.`;
        if (shown < Math.min(ranked.length, BEST)) {
          const rest = element("li", "", list, "it-more");
          const button = element("button", "More places", rest);
          button.type = "button";
          button.addEventListener("click", more);
        }
      };
      await more();
    } catch {
      said.textContent = "The index of the search is not here: `make book` makes it.";
    }
  };
  let timer;
  field.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, 250); });
  field.form.addEventListener("submit", (event) => { event.preventDefault(); search(); });
  field.value = new URLSearchParams(location.search).get("q") || "";
  field.focus();
  search();
})();
