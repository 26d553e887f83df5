// The filter of the References page: it hides what does not fit the chosen subject, language and state.
"use strict";
document.querySelectorAll("form.it-filter").forEach((form) => {
  const items = [...document.querySelectorAll(".it-refs li")];
  const sections = [...document.querySelectorAll(".it-refs section")];
  const said = form.querySelector("output");
  const apply = () => {
    const wanted = ["t", "l", "s"].map((name) => [name, form.elements[name].value]);
    let shown = 0;
    for (const item of items) {
      item.hidden = wanted.some(
        ([name, value]) => value && !item.dataset[name].split(" ").includes(value));
      shown += !item.hidden;
    }
    for (const section of sections) section.hidden = !section.querySelector("li:not([hidden])");
    said.textContent = `${shown} of ${items.length}`;
  };
  form.addEventListener("change", apply);
  form.addEventListener("reset", () => setTimeout(apply));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  apply();
});
