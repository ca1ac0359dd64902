// Shared by both pages: two languages, light and dark colours, and the stored choice of both.
//
// An element with `data-w` gets its text from the page's texts, one with `data-label` its label, one with `data-title`
// its tooltip, one with `data-hint` its placeholder.

let words = {};

// 0 is English, 1 Chinese: the stored choice, or the first of the visitor's languages that is supported.
export let language = navigator.languages.find((tag) => /^(zh|en)/.test(tag))?.startsWith("zh") ? 1 : 0;

export const word = (key) => words[key][language];

export function useWords(table) {
  words = table;
}

// Starts the buttons for language and colours; `redraw` writes the page's own texts again.
export function startLook(redraw) {
  const button = (id) => document.getElementById(id);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;

  function say(number) {
    speak(number);
    button("language").textContent = number ? "EN" : "中文";
    redraw();
  }
  function paint(theme) {
    root.dataset.theme = theme;
    redraw();
  }

  dark.onchange = redraw;
  button("language").onclick = () => {
    say(1 - language);
    keep("language", language);
  };
  button("theme").onclick = () => {
    const now = root.dataset.theme ?? (dark.matches ? "dark" : "light");
    paint(now === "dark" ? "light" : "dark");
    keep("theme", root.dataset.theme);
  };
  say(kept("language") === null ? language : Number(kept("language")));
  if (kept("theme")) paint(kept("theme"));
}

function speak(number) {
  language = number;
  document.documentElement.lang = ["en", "zh-Hans"][language];
  for (const element of document.querySelectorAll("[data-w]")) element.textContent = word(element.dataset.w);
  for (const element of document.querySelectorAll("[data-hint]")) element.placeholder = word(element.dataset.hint);
  for (const element of document.querySelectorAll("[data-title]")) element.title = word(element.dataset.title);
  for (const element of document.querySelectorAll("[data-label]")) {
    element.setAttribute("aria-label", word(element.dataset.label));
    element.title = word(element.dataset.label);
  }
}

// A browser may refuse storage; the page works without it.
export function keep(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {}
}
export function kept(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}
