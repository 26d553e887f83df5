// A chapter's page: a switch for all of its code, and folded parts that links and paper open.
"use strict";
(() => {
  const CODE = "details.it-how, :is(.tag_it-setup, .tag_it-prepares) > details";
  const folded = () => [...document.querySelectorAll(CODE)];
  const buttons = document.querySelector(".article-header-buttons");
  let showsAll = false;
  // What is folded is not parsed before it is wanted: it waits in a <noscript>, as text.
  const parse = (details) => {
    const waiting = details.querySelector(":scope > noscript");
    if (!waiting) return;
    waiting.outerHTML = waiting.textContent;
    details.querySelectorAll("pre").forEach(copied);
    enliven(details);
  };
  const parseAll = () => document.querySelectorAll("details:has(> noscript)").forEach(parse);
  const copied = (code) => {
    const button = document.querySelector("button.copybtn")?.cloneNode(true);
    if (!button || !code.closest(".highlight")) return;
    code.id ||= `folded${document.querySelectorAll("pre[id]").length}`;
    button.dataset.clipboardTarget = `#${code.id}`;
    code.after(button);
  };
  const enliven = (part) => {
    for (const details of part.querySelectorAll("details:has(> noscript)"))
      details.addEventListener("toggle", () => parse(details));
    for (const details of part.querySelectorAll(CODE)) if (showsAll) details.open = true;
    part.querySelectorAll(".it-replay").forEach(replayed);
  };
  const switched = () => {
    const key = "inside-pytorch-code";
    const remembered = () => { try { return localStorage.getItem(key); } catch { return null; } };
    const remember = (value) => { try { localStorage.setItem(key, value); } catch { /* not allowed */ } };
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn btn-sm it-code-switch";
    button.textContent = "Show all code";
    const set = (all) => {
      showsAll = all;
      document.documentElement.toggleAttribute("data-all-code", all);
      folded().forEach((details) => { details.open = all; });
      button.setAttribute("aria-pressed", String(all));
    };
    button.addEventListener("click", () => {
      remember(showsAll ? "folded" : "all");
      set(!showsAll);
    });
    buttons.prepend(button);
    set(remembered() === "all");
  };
  // A replay shows one state; a slider, two buttons and the arrow keys lead to the others.
  const replayed = (replay) => {
    const states = [...replay.querySelectorAll(".it-state")];
    const bar = document.createElement("div");
    bar.className = "it-steps";
    const button = (label, text, step) => {
      const made = document.createElement("button");
      made.type = "button";
      made.textContent = text;
      made.setAttribute("aria-label", label);
      made.addEventListener("click", () => show(Number(slider.value) + step));
      return made;
    };
    const slider = document.createElement("input");
    Object.assign(slider, { type: "range", min: 1, max: states.length, step: 1, value: 1 });
    slider.setAttribute("aria-label", "State");
    const count = document.createElement("output");
    const said = document.createElement("span");
    said.className = "it-announced";
    said.setAttribute("aria-live", "polite");
    const show = (wanted, silent) => {
      const at = Math.min(Math.max(wanted, 1), states.length);
      states.forEach((state, place) => state.classList.toggle("it-now", place + 1 === at));
      slider.value = at;
      count.textContent = `${at} of ${states.length}`;
      slider.setAttribute("aria-valuetext", `${at} of ${states.length}`);
      back.disabled = at === 1;
      next.disabled = at === states.length;
      if (!silent) said.textContent = states[at - 1].querySelector(".it-says").textContent;
    };
    const back = button("Previous state", "◀", -1), next = button("Next state", "▶", 1);
    slider.addEventListener("input", () => show(Number(slider.value)));
    replay.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step || event.target === slider || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      show(Number(slider.value) + step);
    });
    bar.append(back, slider, next, count, said);
    replay.prepend(bar);
    replay.classList.add("it-live");
    show(1, true);
  };
  enliven(document);
  if (buttons && document.querySelector(`${CODE}, details.it-deeper`)) switched();
  // A search on the page finds what is parsed.
  addEventListener("keydown", (event) => {
    if (event.key === "F3" || ((event.ctrlKey || event.metaKey) && event.key === "f")) parseAll();
  });
  // A link into a folded part opens it, and all that it stands in.
  const open = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    if (id && !document.getElementById(id)) parseAll();
    const target = id && document.getElementById(id);
    if (!target) return;
    // A section's other names stand in it, before what is folded.
    const folded = [target, target.parentElement]
      .map((part) => part.querySelector(":scope > details.it-deeper")).find(Boolean);
    const inside = folded || target.closest("details");
    for (let part = inside; part; part = part.parentElement.closest("details")) part.open = true;
    if (inside) target.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();
  // On paper nothing can be opened, and solutions stand behind the chapter.
  const end = document.createElement("section");
  end.className = "it-solutions";
  let closed = [], solutions = [];
  const collected = () => {
    let exercise = "";
    for (const one of document.querySelectorAll("article .exercise > .admonition-title, div.cell details.hide")) {
      const cell = one.closest("div.cell");
      if (one.matches("p")) exercise = one.textContent;
      else if (one.querySelector("summary").textContent.includes("Show the solution")) {
        const place = document.createComment("solution"), title = document.createElement("h3");
        title.textContent = exercise;
        cell.replaceWith(place);
        end.append(title, cell);
        solutions.push({ cell, place });
      }
    }
  };
  addEventListener("beforeprint", () => {
    parseAll();
    closed = [...document.querySelectorAll("article details:not([open])")];
    closed.forEach((details) => { details.open = true; });
    end.innerHTML = "<h2>Solutions</h2>";
    collected();
    if (solutions.length) document.querySelector("article").append(end);
  });
  addEventListener("afterprint", () => {
    closed.forEach((details) => { details.open = false; });
    solutions.forEach(({ cell, place }) => place.replaceWith(cell));
    solutions = [];
    end.remove();
  });
})();
