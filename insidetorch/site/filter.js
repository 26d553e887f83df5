// The filter of a list: it hides what does not fit the words and choices, which stand in the page's address.
"use strict";
document.querySelectorAll("form.it-filter").forEach((form) => {
  const items = [...document.querySelectorAll(form.dataset.items)];
  const around = [...document.querySelectorAll("article section, article .it-group")]
    .filter((one) => items.some((item) => one.contains(item)) && !one.contains(form));
  const fields = [...form.elements].filter((field) => field.name);
  const said = form.querySelector("output");
  // Of a definition, its terms stand before it.
  const terms = (item) => {
    const found = [];
    for (let one = item.previousElementSibling; one && one.matches("dt"); one = one.previousElementSibling)
      found.push(one);
    return item.matches("dd") ? found : [];
  };
  const texts = items.map((item) => [...terms(item), item].map((one) => one.textContent).join(" ").toLowerCase());
  const values = (item, name) => (item.closest(`[data-${name}]`)?.dataset[name] ?? "").split(" ");
  const apply = () => {
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
  form.hidden = false;
  if (asked.size) apply();
});
