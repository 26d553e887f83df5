// A chapter's page: a switch for all of its code, and folded parts that links and paper open.
"use strict";
(() => {
  const code = document.querySelectorAll("details.it-how, :is(.tag_it-setup, .tag_it-prepares) > details");
  const deeper = document.querySelectorAll("details.it-deeper");
  // Folded code is not parsed before it is opened.
  const parse = (details) => {
    const waiting = details.querySelector(":scope > noscript");
    if (!waiting) return;
    waiting.outerHTML = waiting.textContent;
    const made = details.querySelector("pre"), copies = document.querySelector("button.copybtn")?.cloneNode(true);
    if (!copies) return;
    made.id = `folded${document.querySelectorAll("pre[id]").length}`;
    copies.dataset.clipboardTarget = `#${made.id}`;
    made.after(copies);
  };
  code.forEach((details) => details.addEventListener("toggle", () => parse(details)));
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
  // A replay shows one state; a slider, two buttons and the arrow keys lead to the others.
  document.querySelectorAll(".it-replay").forEach((replay) => {
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
  });
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
  // On paper nothing can be opened, and solutions stand behind the chapter.
  let closed = [];
  let exercise = "";
  const solutions = [];
  for (const one of document.querySelectorAll("article .exercise > .admonition-title, div.cell details.hide")) {
    if (one.matches("p")) exercise = one.textContent;
    else if (one.querySelector("summary").textContent.includes("Show the solution")) {
      const cell = one.closest("div.cell"), title = document.createElement("h3");
      title.textContent = exercise;
      solutions.push({ details: one, cell, title, place: document.createComment("solution") });
      cell.before(solutions.at(-1).place);
    }
  }
  const end = document.createElement("section");
  end.className = "it-solutions";
  end.innerHTML = "<h2>Solutions</h2>";
  addEventListener("beforeprint", () => {
    closed = [...code, ...deeper, ...solutions.map(({ details }) => details)].filter((details) => !details.open);
    closed.forEach((details) => { parse(details); details.open = true; });
    solutions.forEach(({ title, cell }) => end.append(title, cell));
    if (solutions.length) document.querySelector("article").append(end);
  });
  addEventListener("afterprint", () => {
    closed.forEach((details) => { details.open = false; });
    solutions.forEach(({ cell, place }) => place.after(cell));
    end.remove();
  });
})();
