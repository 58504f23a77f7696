// ---- a view: the text under one partition -------------------------------------------------------------------
const views = data.views.map((known) => new (class View {
  name = known.name;
  score = known.score;
  friendCircles = known.circles.filter((circle) => !circle.passage);
  passages = known.circles.filter((circle) => circle.passage);
  circlesOf = memberships(this.friendCircles);
  passagesOf = memberships(this.passages);
  shown = new Set(this.friendCircles.keys()); // numbers of the circles whose lines are drawn
  solo = null; // the circle that stands out
  pieces = [];
  badges = new Map(); // leader -> the mark beside it
  text = make("main", "text");
  list = make("aside", "circles");
})());
const primary = views[0];
const several = views.length > 1;

function memberships(circles) {
  const found = Array.from({ length }, () => []);
  for (const circle of circles) for (const node of circle.members) found[node].push(circle.number);
  return found;
}

const colour = (number) => `var(--c${number % 8})`;
const meet = (view, i, j) => view.circlesOf[i].filter((number) => view.circlesOf[j].includes(number));

function drawText(view) {
  const begins = new Map(view.passages.map((passage) => [passage.members[0], passage.number]));
  const leaders = new Set(view.friendCircles.map((circle) => circle.leader));
  const label = several ? `The document’s words under ${view.name}` : "The document’s words";
  Object.assign(view.text, { role: "listbox", dir: "ltr", ariaLabel: `${label}; arrow keys walk from word to word` });
  let block = make("div");
  for (let node = 0; node < length; node++) {
    if (begins.has(node)) {
      if (block.childNodes.length) view.text.append(block, " ");
      block = make("div");
      block.dataset.label = `¶${begins.get(node)}`;
    } else if (!continues(node)) block.append(" ");
    const piece = make("span", "piece", shownWord(node));
    piece.classList.toggle("match", matches.has(node));
    piece.classList.toggle("answer", inAnswer(node));
    Object.assign(piece, { dir: "auto", tabIndex: node ? -1 : 0, role: "option", ariaSelected: "false" });
    piece.dataset.node = node;
    view.pieces.push(piece);
    block.append(piece);
    if (leaders.has(node)) {
      view.badges.set(node, make("sup", "badge"));
      view.badges.get(node).ariaHidden = "true";
      block.append(view.badges.get(node));
    }
  }
  view.text.append(block);
  if (!length) view.text.append(make("p", "note", "The document has no word piece."));
  else if (data.whole && data.whole[0] > length) {
    view.text.append(make("p", "note cut", `The document goes on: ${figure(length)} of its ${count(data.whole[0], "word piece")} are read.`));
  }
}

// The line of a circle: solid for the first eight circles, then dashed, then dotted.
function line(number) {
  const [on, off] = [[1, 0], [6, 3], [2, 3]][Math.floor(number / 8) % 3];
  const paint = colour(number);
  return `repeating-linear-gradient(90deg, ${paint} 0 ${on}px, transparent ${on}px ${on + off}px)`;
}

// One line for each circle, one below the other.
function underline(element, numbers, room = 11) {
  const step = Math.min(4, room / Math.max(numbers.length, 1)), thick = Math.max(step - 1, 0.8);
  element.style.backgroundImage = numbers.map(line).join(", ");
  element.style.backgroundSize = numbers.map(() => `100% ${thick}px`).join(", ");
  element.style.backgroundPosition = numbers.map((_, i) => `0 calc(100% - ${room - thick - i * step}px)`).join(", ");
}

function paintCircles(view) {
  const { solo, shown, pieces } = view;
  const member = new Set(solo === null ? [] : view.friendCircles[solo].members);
  const drawn = (number) => (solo === null ? shown.has(number) : number === solo);
  view.text.classList.toggle("solo-view", solo !== null);
  view.text.style.setProperty("--own", solo === null ? "" : colour(solo));
  pieces.forEach((piece, node) => {
    if (view.circlesOf[node].length) underline(piece, view.circlesOf[node].filter(drawn));
    piece.classList.toggle("member", member.has(node));
  });
  for (const [node, badge] of view.badges) {
    const led = view.friendCircles.filter((circle) => circle.leader === node && drawn(circle.number));
    badge.textContent = led.map((circle) => circle.number).join(" ");
    badge.hidden = !led.length;
    pieces[node].classList.toggle("leading", led.length > 0);
  }
  for (const row of view.list.querySelectorAll(".friends > .circle")) {
    const number = Number(row.dataset.circle);
    row.classList.toggle("solo", number === solo);
    row.querySelector(".name").ariaPressed = String(number === solo);
    row.querySelector("input").checked = shown.has(number);
  }
  view.slider.value = view.output.textContent = shown.size;
}

// The circles' numbers, each with its line.
function chips(numbers) {
  const box = make("span", "chips");
  for (const number of numbers) {
    const chip = make("span", "number", number);
    underline(chip, [number], 4);
    box.append(chip);
  }
  return box;
}
