"""What is ranked: collections, document graphs, batches and training groups."""

from socialgraph.data.builder import GraphBuilder
from socialgraph.data.cache import Cache
from socialgraph.data.collection import Collection, Document, Split
from socialgraph.data.folder import load_folder
from socialgraph.data.graph import DocumentGraph, document_graph
from socialgraph.data.groups import TrainingGroups
from socialgraph.data.hub import load_hub
from socialgraph.data.irds import load_irds
from socialgraph.data.msmarco import load_msmarco
from socialgraph.data.pydocs import load_pydocs
from socialgraph.data.relevance import PassageBM25, PassageSample
from socialgraph.data.statistics import TermStatistics
from socialgraph.data.tokens import Tokens
from socialgraph.data.trec import read_qrels, read_run, write_qrels, write_run

__all__ = [
    "Cache",
    "Collection",
    "Document",
    "DocumentGraph",
    "GraphBuilder",
    "PassageBM25",
    "PassageSample",
    "Split",
    "TermStatistics",
    "Tokens",
    "TrainingGroups",
    "document_graph",
    "load_folder",
    "load_hub",
    "load_irds",
    "load_msmarco",
    "load_pydocs",
    "read_qrels",
    "read_run",
    "write_qrels",
    "write_run",
]
