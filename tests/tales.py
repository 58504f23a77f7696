"""Random texts, what builds their graphs, and a small collection in a folder."""

import json

import torch

from socialgraph.data import Document, GraphBuilder, TermStatistics, Tokens


def random_texts(lengths, words=195, seed=0):
    """Return a text of so many words for each length; the tiny BERT's vocabulary has w0 to w194."""
    draw = torch.Generator().manual_seed(seed)
    return [" ".join(f"w{i}" for i in torch.randint(0, words, (length,), generator=draw)) for length in lengths]


def builder_of(bert, texts, *parts, lengths=(), **options):
    """Return what builds graphs of texts, a dict or a list of d0, d1, ...; lengths: word pieces that are read."""
    named = texts if isinstance(texts, dict) else {f"d{i}": text for i, text in enumerate(texts)}
    documents = {name: text if isinstance(text, Document) else Document(name, text) for name, text in named.items()}
    tokens = Tokens(bert, *lengths)
    return GraphBuilder(documents, tokens, TermStatistics.of(tokens, documents), *parts, **options)


def write_collection(folder, texts, queries, **splits):
    """Write a text and a query for each document, and the documents of each split: otter answers the query q-otter."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps({"doc_id": name, "text": text}) + "\n" for name, text in texts.items())
    (folder / "corpus.jsonl").write_text("".join(lines))
    for split, names in splits.items():
        (folder / f"queries.{split}.tsv").write_text("".join(f"q-{name}\t{queries[name]}\n" for name in names))
        (folder / f"qrels.{split}.txt").write_text("".join(f"q-{name} 0 {name} 1\n" for name in names))
