// Keys and saving without leaving the place; everything works without this file too.
"use strict";
const forms = () => [...document.querySelectorAll("form.vote")];
let at = -1;
function go(step) {
  const all = forms();
  if (!all.length) return;
  at = Math.min(Math.max(at + step, 0), all.length - 1);
  all[at].scrollIntoView({ block: "center" });
  all[at].querySelector("textarea").focus({ preventScroll: true });
  all[at].querySelector("textarea").blur();
  all.forEach((form, i) => form.classList.toggle("here", i === at));
}
async function save(form) {
  const state = form.querySelector(".state");
  const body = new URLSearchParams(new FormData(form));
  state.textContent = "saving";
  try {
    const answer = await fetch(form.action, { method: "POST", body, redirect: "manual", credentials: "same-origin" });
    const kept = answer.type === "opaqueredirect" || answer.ok;
    state.textContent = kept ? "saved" : "NOT saved: open the request again";
  } catch {
    state.textContent = "NOT saved: is the desk still running?";
  }
  const open = forms().filter((f) => f.dataset.item && !f.querySelector("input[type=radio]:checked")).length;
  const told = document.querySelector("#open-items");
  if (told) told.textContent = String(open);
}
document.addEventListener("submit", (event) => {
  if (!event.target.classList.contains("vote")) return;
  event.preventDefault();
  save(event.target);
});
document.addEventListener("change", (event) => {
  const form = event.target.closest("form.vote");
  if (form) save(form);
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") return void document.activeElement.blur();
  if (["TEXTAREA", "INPUT"].includes(event.target.tagName) && event.target.type !== "radio") return;
  const pick = { a: "accept", r: "return", x: "refuse" }[event.key];
  if (event.key === "j") go(1);
  else if (event.key === "k") go(-1);
  else if (event.key === "?") document.querySelector("#keys").toggleAttribute("open");
  else if (pick && forms()[at]) {
    const radio = forms()[at].querySelector(`input[value=${pick}]`);
    radio.checked = true;
    radio.dispatchEvent(new Event("change", { bubbles: true }));
    if (!forms()[at].querySelector("textarea").value) forms()[at].querySelector("textarea").focus();
  } else return;
  event.preventDefault();
});
if (document.querySelector("main[data-waiting]")) setTimeout(() => location.reload(), 2000);
