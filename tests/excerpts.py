"""Small sources in the formats of the public ones, written here: no sentence of theirs is in them."""

import csv
import json
from pathlib import Path

TALES = ("the-otter", "the-heron", "the-newt", "the-lynx", "the-stoat", "the-toad")
QUESTION = ["question_id", "local-or-sum", "cor_section", "attribute1", "attribute2", "question", "answer1"]


def write_csv(file: Path, header, rows):
    """Write a table as the source does: a byte order mark, quotes, line ends of its own inside a text."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "w", encoding="utf-8-sig", newline="") as lines:
        csv.writer(lines).writerows([header, *rows])


def write_fairytale(folder: Path) -> Path:
    """FairytaleQA's repository: six tales of three sections; one is in its official test, one in its val."""
    official = {"the-newt": "test", "the-lynx": "val"}
    for tale in TALES:
        animal = tale.removeprefix("the-")
        # the numbers of the last section are wrong, as in one tale of the source
        sections = [
            (1, f"Once there was a {animal}.\rIt lived by a brook."),
            (2, f'"Good day," said the {animal},\r\n"and who are you?"'),
            (2, f"In the end the {animal} found a golden shell."),
        ]
        questions = [
            (1, "local", "1", "setting", "", f"Where did the {animal}  live?\n", "by a brook"),
            (2, "local", "3", "action", "", f"What did the {animal} find?", "a shell"),
            (2, "local", "1", "action", "", "An id that comes twice?", "no"),
            (3, "summary", "2, 3", "action", "", f"Whom did the {animal} greet?", ""),
            (4, "local", "1", "setting", "", f"WHERE did the {animal} live?", "a repeat"),
            (10, "summary", "9", "setting", "", f"Of what section is the {animal}?", "of none"),
        ]
        split = official.get(tale, "train")
        stories = folder / "data-by-train-split" / "section-stories" / "all"
        write_csv(stories / f"{tale}-story.csv", ["section", "text"], sections)
        asked = folder / "data-by-train-split" / "questions" / split / f"{tale}-questions.csv"
        write_csv(asked, QUESTION, questions)
    (folder / "LICENSE").write_text("A licence.\n")
    return folder


def write_covidqa(folder: Path, papers: int = 19) -> Path:
    """COVID-QA's repository: each paper has a question of its own, one with odd blanks, and one that all have."""
    data = []
    for number in range(papers):
        text = f"Paper {number}\n\nAbstract: Masks of kind{number} help much. They cost{number} little."
        answers = {f"What  does kind{number} do?\n": "help", f"What is cost{number}?": "little"}
        answers["What is new?"] = "Masks"
        qas = [
            {"question": question, "id": 9, "answers": [{"text": answer, "answer_start": text.index(answer)}]}
            for question, answer in answers.items()
        ]
        data.append({"paragraphs": [{"context": text, "document_id": 600 - number, "qas": qas}]})
    file = folder / "data" / "question-answering" / "200423_covidQA.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"data": data}), encoding="utf-8")
    (folder / "LICENSE").write_text("A licence.\n")
    return folder


ROWS = "id\tutterance\tcontext\ttargetValue\n"


def write_wtq(folder: Path) -> Path:
    """WikiTableQuestions' repository: five tables on four pages; one page is of its test, one of its dev."""
    pages = {  # batch, number -> title, Wikipedia's id, number of the table
        (200, 0): ("Otter (band)", 31, 0), (200, 1): ("Heron", 32, 1), (201, 0): ("Newt", 4, 0),
        (201, 10): ("Otter (band)", 31, 1), (201, 2): ("Lynx", 33, 0),
    }  # fmt: skip
    for (batch, number), (title, page, table) in pages.items():
        where = folder / "page" / f"{batch}-page"
        where.mkdir(parents=True, exist_ok=True)
        told = {"title": title, "url": "http://x", "tableIndex": table, "id": page, "revision": 5 * page}
        (where / f"{number}.json").write_text(json.dumps(told))
        rows = "".join(f"<tr><td>{title}{row}</td><td>{page * row}</td></tr>" for row in range(3))
        (where / f"{number}.html").write_text(
            f"<!-- http%3A//x -->\n<p>About {title}</p>\n<table class='wikitable'>{rows}</table>\n<p>Then</p>\n"
            f"<table class='wikitable sortable'><tr><th>Year</th><td>{page}</td></tr></table>",
            encoding="utf-8",
        )
    asked = {
        "training": [
            ("nt-0", "how many  years did otters play?", "csv/200-csv/0.csv"),
            ("nt-1", "HOW many years did otters play?", "csv/201-csv/10.csv"),  # a repeat: the same page
            ("nt-2", "how many years did otters play?", "csv/200-csv/1.csv"),  # another page
            ("nt-3", "who won?", "csv/201-csv/0.csv"),  # two words
            ("nt-4", r"what of a\pb or \\ is\nlynx?", "csv/201-csv/2.csv"),
        ],
        "pristine-seen-tables": [("ns-0", "which year is last?", "csv/201-csv/10.csv")],
        "pristine-unseen-tables": [("nu-0", "which newt is it?", "csv/201-csv/0.csv")],
        "random-split-1-dev": [("nt-2", "how many years did otters play?", "csv/200-csv/1.csv")],
    }
    (folder / "data").mkdir()
    for part, rows in asked.items():
        lines = "".join("\t".join([*row, "an answer"]) + "\n" for row in rows)
        (folder / "data" / f"{part}.tsv").write_text(ROWS + lines, encoding="utf-8", newline="\n")
    (folder / "LICENSE").write_text("A licence.\n")
    return folder
