// A chapter's page: a switch for all of its code, and folded parts that links and paper open.
"use strict";
(() => {
  const code = document.querySelectorAll("details.it-how, .tag_it-setup > details");
  const deeper = document.querySelectorAll("details.it-deeper");
  const buttons = document.querySelector(".article-header-buttons");
  if (code.length && buttons) {
    const key = "inside-pytorch-code";
    const remembered = () => { try { return localStorage.getItem(key); } catch { return null; } };
    const remember = (value) => { try { localStorage.setItem(key, value); } catch { /* not allowed */ } };
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn btn-sm it-code-switch";
    button.textContent = "Show all code";
    const set = (all) => {
      document.documentElement.toggleAttribute("data-all-code", all);
      code.forEach((details) => { details.open = all; });
      button.setAttribute("aria-pressed", String(all));
    };
    button.addEventListener("click", () => {
      const all = button.getAttribute("aria-pressed") !== "true";
      remember(all ? "all" : "folded");
      set(all);
    });
    buttons.prepend(button);
    set(remembered() === "all");
  }
  // A link into a folded part opens it, and all that it stands in.
  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const inside = target.querySelector(":scope > details.it-deeper") || target.closest("details");
    for (let part = inside; part; part = part.parentElement.closest("details")) part.open = true;
    if (inside) target.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();
  // On paper nothing can be opened.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...code, ...deeper].filter((details) => !details.open);
    closed.forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach((details) => { details.open = false; }));
})();
