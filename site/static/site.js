document.querySelector("nav a[aria-current]")?.scrollIntoView({block: "nearest"});

const box = document.querySelector("search");
const [input, status, list] = ["input", "p", "ol"].map((name) => box.querySelector(name));
let index;
box.hidden = false;
input.addEventListener("input", async () => {
  const sections = await (index ??= fetch(input.dataset.index).then((answer) => answer.json()));
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = sections.map((section) => {
    const [title, text] = [`${section.page} ${section.heading}`.toLowerCase(), section.text.toLowerCase()];
    const ranks = words.map((word) => 10 * title.includes(word) + Math.min(9, text.split(word).length - 1));
    return {...section, start: Math.max(0, text.indexOf(words[0]) - 40), rank: Math.min(...ranks) && ranks.reduce((a, b) => a + b, 0)};
  }).filter((hit) => words.length && hit.rank).sort((a, b) => b.rank - a.rank);
  status.textContent = words.length ? `Results: ${hits.length}` : "";
  list.replaceChildren(...hits.slice(0, 12).map((hit) => {
    const item = document.createElement("li"), link = document.createElement("a");
    Object.assign(link, {href: hit.address, textContent: hit.heading ? `${hit.page}: ${hit.heading}` : hit.page});
    item.append(link, hit.text.slice(hit.start, hit.start + 140));
    return item;
  }));
});
