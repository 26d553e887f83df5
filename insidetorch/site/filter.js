// The filter of a list: it hides what does not fit the words and choices, which stand in the page's address.
"use strict";
// A long list is not parsed before it is wanted: seen, looked through, filtered or printed.
const parse = (waiting) => { if (waiting) waiting.outerHTML = waiting.textContent; };
const parseAll = () => document.querySelectorAll(".it-group > noscript").forEach(parse);
const near = new IntersectionObserver((seen) => {
  for (const { isIntersecting, target } of seen) if (isIntersecting) parse(target.querySelector(":scope > noscript"));
}, { rootMargin: "100% 0%" });
document.querySelectorAll(".it-group:has(> noscript)").forEach((group) => near.observe(group));
addEventListener("beforeprint", parseAll);
addEventListener("keydown", (event) => {
  if (event.key === "F3" || ((event.ctrlKey || event.metaKey) && event.key === "f")) parseAll();
});
document.querySelectorAll("form.it-filter").forEach((form) => {
  let items = [], around = [], texts = [];
  const fields = [...form.elements].filter((field) => field.name);
  const said = form.querySelector("output");
  // Of a definition, its terms stand before it.
  const terms = (item) => {
    const found = [];
    for (let one = item.previousElementSibling; one && one.matches("dt"); one = one.previousElementSibling)
      found.push(one);
    return item.matches("dd") ? found : [];
  };
  const read = () => {
    parseAll();
    items = [...document.querySelectorAll(form.dataset.items)];
    around = [...document.querySelectorAll("article section, article .it-group")]
      .filter((one) => items.some((item) => one.contains(item)) && !one.contains(form));
    texts = items.map((item) => [...terms(item), item].map((one) => one.textContent).join(" ").toLowerCase());
  };
  const values = (item, name) => (item.closest(`[data-${name}]`)?.dataset[name] ?? "").split(" ");
  const apply = () => {
    if (!items.length) read();
    const words = form.elements.q.value.toLowerCase().split(/\s+/);
    const chosen = fields.filter((field) => field.name !== "q" && field.value);
    let shown = 0;
    items.forEach((item, place) => {
      item.hidden = !words.every((word) => texts[place].includes(word))
        || chosen.some((field) => !values(item, field.name).includes(field.value));
      for (const term of terms(item)) term.hidden = item.hidden;
      shown += !item.hidden;
    });
    for (const one of around) one.hidden = !items.some((item) => !item.hidden && one.contains(item));
    said.textContent = `${shown} of ${items.length}`;
  };
  const changed = () => {
    apply();
    const query = new URLSearchParams(fields.filter((field) => field.value).map((field) => [field.name, field.value]));
    try { history.replaceState(null, "", `${location.pathname}${`?${query}`.replace(/\?$/, "")}${location.hash}`); } catch { /* not allowed */ }
  };
  const asked = new URLSearchParams(location.search);
  for (const field of fields) field.value = asked.get(field.name) ?? "";
  form.addEventListener("input", changed);
  form.addEventListener("reset", () => setTimeout(changed));
  form.addEventListener("submit", (event) => event.preventDefault());
  if (asked.size) apply();
});
