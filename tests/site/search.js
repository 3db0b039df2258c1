// Asks the built site's search the questions of questions.txt: node tests/site/search.js SITE
// Each line is "question | pages that answer it". Fails unless every answer is among the first five
// pages and at least four of five stand first.

const fs = require("fs"), path = require("path"), vm = require("vm");

const node = () => ({ appendChild: node, classList: { add() {} }, dataset: {}, setAttribute() {} });
const page = { document: { documentElement: node(), getElementById: node, querySelectorAll: () => [] } };
Object.assign(page, { window: page, SPHINX_HIGHLIGHT_ENABLED: false, _ready() {}, _: (text) => text });
const scripts = ["_static/searchtools.js", "_static/language_data.js", "searchindex.js"].map((name) =>
  fs.readFileSync(path.join(process.argv[2], name), "utf8"));
vm.createContext(page);
vm.runInContext(`${scripts.join(";\n")}; ask = (text) => Search._performSearch(...Search._parseQuery(text));`, page);

const lines = fs.readFileSync(path.join(__dirname, "questions.txt"), "utf8").trim().split("\n");
let [first, late] = [0, 0];
for (const line of lines) {
  const [question, answers] = line.split("|").map((part) => part.trim());
  const pages = [...new Set(page.ask(question).reverse().map(([name]) => name))];
  const ranks = answers.split(" ").map((name) => pages.indexOf(name)).filter((rank) => rank >= 0);
  const rank = Math.min(...ranks);
  first += rank === 0;
  late += !(rank < 5);
  if (rank !== 0) console.log(`${rank + 1}: ${question} -> ${pages.slice(0, 5).join(" ")}`);
}
console.log(`${first} of ${lines.length} answers stand first, ${late} are not among the first five`);
process.exit(lines.length > 40 && first >= 0.8 * lines.length && late === 0 ? 0 : 1);
