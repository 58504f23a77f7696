"""Options of ``socialgraph inspect`` that say what is drawn: two partitions, own edges, defaults, evidence."""

from __future__ import annotations

import re

from tales import write_collection
from test_main import QUERY, page, run, world  # noqa: F401

from socialgraph import Ranker
from socialgraph.cli import parser
from socialgraph.data import Document, load_folder
from socialgraph.data.evidence import evidence_nodes
from socialgraph.data.tokens import Tokens
from socialgraph.inspect.command import partition
from socialgraph.recipes.compose import compose_recipe

#: whose page ``socialgraph inspect`` draws, unless told otherwise
RECIPE = "socialformer-edge"


def test_the_defaults_are_those_of_a_recipe():
    options, recipe = parser().parse_args(["inspect", "--query", "q", "--document", "d"]), compose_recipe(RECIPE)
    wanted = {
        "length": recipe["document_length"], "k": recipe["circles"]["k"], "window": recipe["passages"]["size"],
        "seed": recipe["seed"], "sparsity": None, "backbone": None,
    }  # fmt: skip
    assert {name: getattr(options, name) for name in wanted} == wanted
    assert partition(options.partition, options.k).__class__.__name__ == recipe["circles"]["_target_"].split(".")[-1]
    words = " ".join(next(one for one in parser()._actions if one.choices).choices["inspect"].format_help().split())
    for told in (recipe["model"]["backbone"], recipe["edges"]["sparsity"], recipe["document_length"]):
        assert re.search(rf"\(default: [^)]*\b{told}\)", words)


def test_it_draws_what_the_ranker_explains(world):  # noqa: F811
    run("--document", "d1", "--backbone", world)
    ranker = Ranker.from_recipe(RECIPE, backbone=world)
    texts = load_folder("collection")
    ranker.count(texts).explain(QUERY, texts.documents["d1"]).save("other.html")
    drawn, explained = (page(name)["views"][0]["circles"] for name in ("report.html", "other.html"))
    assert [circle["members"] for circle in drawn] == [circle["members"] for circle in explained]
    assert len(drawn) > 1


def test_two_partitions_and_a_pattern_of_ones_own(world, tmp_path):  # noqa: F811
    (tmp_path / "my_patterns.py").write_text(
        "from socialgraph.edges import Centrality\n\n\n"
        "class Growing(Centrality):\n    def weights(self, graph):\n        return 1.0 + graph.input_ids.double()\n"
    )
    edges = ("--edges", "my_patterns.Growing")
    run("--document", "d1", "--backbone", world, "--partition", "edge,node", "-k", "3", *edges)
    found = page()
    assert [view["name"] for view in found["views"]] == ["edge", "node"]
    assert list(found["edges"]["shares"]) == ["growing"]
    for view in found["views"]:
        names = [circle["name"] for circle in view["circles"] if not circle["passage"]]
        assert len(names) == len(set(names)) == 3
    members = [node for circle in found["views"][1]["circles"] if not circle["passage"] for node in circle["members"]]
    assert len(members) == len(set(members))  # node-level circles share none


def test_blocks_stand_beside_circles_with_their_friends(world):  # noqa: F811
    run("--document", "d1", "--backbone", world, "--partition", "sentences,edge", "-k", "2")
    assert set(page()["edges"]["shares"]) > {"static_distance"}


def test_the_evidence_of_a_folder_is_found_for_any_tokenizer(tmp_path, tiny_bert):
    text = "Once upon a time a dog barked. The answer is unbelievable weather. The end."
    document = Document("d", text, "A title of five words")
    tokens = Tokens("minilm")
    start = len(tokens.tokenizer(text[: text.index("The answer")], add_special_tokens=False)["input_ids"])
    size = len(tokens.tokenizer("The answer is unbelievable weather", add_special_tokens=False)["input_ids"])
    header = "qid\tdoc_id\tstart_tok\tend_tok\n"
    (tmp_path / "evidence.tsv").write_text(f"{header}q\td\t{start}\t{start + size}\n")
    ids = tokens.document(document)
    first, last = evidence_nodes("q", document, tokens.tokenizer, tmp_path)
    assert tokens.tokenizer.decode(ids[first:last]) == "the answer is unbelievable weather"
    assert evidence_nodes("q2", document, tokens.tokenizer, tmp_path) is None
    assert evidence_nodes("q", Document("other", text), tokens.tokenizer, tmp_path) is None
    docs = Document("library/m", "m.first\nOne thing.\nm.second\nWhat is asked for.\nm.third\nMore.", "m")
    first, last = evidence_nodes("m.second", docs, tokens.tokenizer)
    assert tokens.tokenizer.decode(tokens.document(docs)[first:last]) == "m. second what is asked for."


def test_the_page_marks_the_evidence_of_a_query_of_the_collection(world, tmp_path):  # noqa: F811
    run("--document", "d1", "--backbone", world)
    assert page()["evidence"] is None
    folder = tmp_path / "told"
    write_collection(folder, {"d1": "w1 w2 w3 w7 " * 5}, {"d1": "w7 w30"}, test=["d1"])
    # places are in word pieces of MiniLM, in which w2 is two: "w", "##2"
    (folder / "evidence.tsv").write_text("qid\tdoc_id\tstart_tok\tend_tok\nq-d1\td1\t2\t6\n")
    run("--collection", "told", "--document", "d1", "--backbone", world)
    assert page()["evidence"] == [1, 3]
    assert re.fullmatch(r"w2 w3", " ".join(page()["words"][1:3]))
