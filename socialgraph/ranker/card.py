"""The card of a saved ranker: what it is, how it was trained, what was measured, how to use it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch

from socialgraph.backbone import OFFLINE, OFFLINE_ON_HUB, READER
from socialgraph.described import text_of
from socialgraph.errors import counted

#: a name that may be one of the hub
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")

_CITATION = """\
@inproceedings{socialformer2022,
  author = {Yujia Zhou and Zhicheng Dou and Huaying Yuan and Zhengyi Ma},
  title = {Socialformer: Social Network Inspired Long Document Modeling for Document Ranking},
  booktitle = {Proceedings of the ACM Web Conference 2022},
  year = {2022}
}"""

_USE = """\
## Use

```sh
pip install 'socialgraph-ir[offline]'
```

```python
from socialgraph import Ranker

ranker = Ranker.from_pretrained("{name}")
ranker.rank("copy a file with its permissions", ["the text of a document", "another one"])
```

The result is `[(place, score), ...]`, best first. `ranker.predict([(query, text), ...])` scores pairs, and
`ranker.explain(query, text)` shows what the score is made of. A class from outside the package is imported only if you
name it: `Ranker.from_pretrained(folder, classes=[MyPartition])`."""

_LIMITS = """\
## Limits

A score orders the documents of one query; scores of different queries, or of different rankers, cannot be compared. A
text beyond the length above is not read. Weights taken from a backbone bring what it learned from its data along,
prejudice included."""

_END = f"""\
## Licence and citation

Apache-2.0, as the package; the backbone has a licence of its own.

```bibtex
{_CITATION}
```"""


def card(recipe: Mapping[str, Any], model: torch.nn.Module, history: Mapping[str, Any], name: str = "") -> str:
    """Return a model card in Markdown. What is not known is said to be so.

    Args:
        recipe: values of the recipe.
        model: what scores.
        history: ``training`` and ``measures``, as :class:`~socialgraph.Ranker` keeps them.
        name: its id on the hub, if it has one.
    """
    trained, measured = _training(recipe, history.get("training")), _measures(history.get("measures"))
    use = _USE.replace("{name}", name or "this folder, or its id on the hub")
    parts = [_front(recipe), f"# {recipe['name']}", _what(recipe, model), use, _recipe(recipe), trained, measured]
    return "\n\n".join([*parts, _LIMITS, _END]) + "\n"


def _front(recipe: Mapping[str, Any]) -> str:
    backbone = str((recipe["model"] or {}).get("backbone"))
    backbone = OFFLINE_ON_HUB if backbone in (OFFLINE, READER) else backbone
    base = [f"base_model: {backbone}"] if _HUB_ID.fullmatch(backbone) else []
    lines = ["library_name: socialgraph", "license: apache-2.0", "pipeline_tag: text-ranking", *base,
             "tags: [long-document-ranking, graph-neural-network, cross-encoder]"]  # fmt: skip
    return "\n".join(["---", *lines, "---"])


def _what(recipe: Mapping[str, Any], model: torch.nn.Module) -> str:
    amount = sum(parameter.numel() for parameter in model.parameters())
    name = str((recipe["model"] or {}).get("backbone"))
    is_hub = _HUB_ID.fullmatch(name)
    start = f"[`{name}`](https://huggingface.co/{name})" if is_hub else f"`{name.rstrip('/').rsplit('/', 1)[-1]}`"
    return (
        "It scores long documents for a query, to rank them again after a first stage such as BM25. It is a "
        f"`{type(model).__name__}` of [socialgraph](https://pypi.org/project/socialgraph-ir/) with {amount:,} "
        f"parameters that started from {start}. It reads the first {recipe['document_length']:,} word pieces of a "
        f"document and {recipe['query_length']} of a query."
    )


def _recipe(recipe: Mapping[str, Any]) -> str:
    parts = {key: recipe[key] for key in ("edges", "circles", "passages", "relevance", "model")}
    told = {name: text_of(value).replace("`", "'").replace("|", "\\|") for name, value in parts.items() if value}
    lines = [f"| {name} | `{text}` |" for name, text in told.items()]
    return "\n".join(["## Recipe", "", "| part | what |", "|---|---|", *lines])


def _training(recipe: Mapping[str, Any], training: Mapping[str, Any] | None) -> str:
    if training is None:
        return (
            "## Training\n\nNot trained as a ranker of documents: it scores with what its backbone knows, and weights "
            "that the backbone does not have are as they were drawn."
        )
    options = ", ".join(f"`{key}={value}`" for key, value in training["options"].items()) or "the recipe's"
    return (
        f"## Training\n\nOn {training['collection']}: {counted(training['groups'], 'group')} of a relevant document "
        f"and {counted(training['negatives'], 'other')}, of {training['queries']:,} queries, in "
        f"{counted(training['steps'], 'step')}; loss: {training['loss']}; seed {recipe['seed']}; options: {options}."
    )


def _measures(measures: Mapping[str, Any] | None) -> str:
    if not measures:
        return "## Measures\n\nNone were taken with this ranker: measure it on your own data before you rely on it."
    lines = ["## Measures", "", "| data | queries | measure | mean | 95 % interval |", "|---|---:|---|---:|---:|"]
    for data, measured in measures.items():
        for name, (mean, low, high) in measured["means"].items():
            bounds = "-" if low is None else f"{low:.4f} to {high:.4f}"
            lines.append(f"| {data} | {measured['queries']} | {name} | {mean:.4f} | {bounds} |")
    return "\n".join([*lines, "", "Intervals of the mean over queries, by Student's t."])
