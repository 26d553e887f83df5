// One switch on a chapter's page: all of its code, or what it demonstrates. The choice is remembered.
"use strict";
(() => {
  const folded = document.querySelectorAll("details.it-how, .tag_it-setup > details");
  const buttons = document.querySelector(".article-header-buttons");
  if (!folded.length || !buttons) return;
  const key = "inside-pytorch-code";
  const remembered = () => { try { return localStorage.getItem(key); } catch { return null; } };
  const remember = (value) => { try { localStorage.setItem(key, value); } catch { /* not allowed */ } };
  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn btn-sm it-code-switch";
  const set = (all) => {
    document.documentElement.toggleAttribute("data-all-code", all);
    folded.forEach((details) => { details.open = all; });
    button.setAttribute("aria-pressed", String(all));
    button.textContent = all ? "Fold the checks" : "Show all code";
  };
  button.addEventListener("click", () => {
    const all = button.getAttribute("aria-pressed") !== "true";
    remember(all ? "all" : "folded");
    set(all);
  });
  buttons.prepend(button);
  set(remembered() === "all");
  // What is folded is open in print: a proof on paper cannot be clicked.
  let before = [];
  addEventListener("beforeprint", () => {
    before = [...folded].filter((details) => !details.open);
    before.forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => before.forEach((details) => { details.open = false; }));
})();
