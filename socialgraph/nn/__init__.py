"""What they say: attention, the BERT convolution, intra- and inter-circle layers, readouts, models."""

from socialgraph.nn.attention import BACKENDS, complete_edges, segment_attention
from socialgraph.nn.bert_conv import BertConv
from socialgraph.nn.bert_ranker import BertRanker
from socialgraph.nn.bi_encoder import BiEncoder, PassageVectors, QueryVectors
from socialgraph.nn.colbert import ColBERT
from socialgraph.nn.embedding import BertEmbedding
from socialgraph.nn.hub_ranker import HubRanker, Objective
from socialgraph.nn.icli import ICLI
from socialgraph.nn.idcm import IDCM
from socialgraph.nn.inter_circle import InterCircle
from socialgraph.nn.keyb import KeyB, KeyBPARADE
from socialgraph.nn.late_interaction import LateInteraction, max_similarity
from socialgraph.nn.masked_attention import masked_attention
from socialgraph.nn.maxp import MaxP
from socialgraph.nn.parade import PARADE
from socialgraph.nn.readout import Readout
from socialgraph.nn.sentence_encoder import SentenceEncoder
from socialgraph.nn.sequences import (
    Sequences,
    bare_query_sequences,
    circle_sequences,
    passage_sequences,
    query_sequences,
)
from socialgraph.nn.socialformer import Socialformer
from socialgraph.nn.sparse_transformer import SparseTransformer
from socialgraph.nn.vanilla_bert import VanillaBERT
from socialgraph.nn.whole_document import WholeDocument

__all__ = [
    "BACKENDS",
    "ICLI",
    "IDCM",
    "PARADE",
    "BertConv",
    "BertEmbedding",
    "BertRanker",
    "BiEncoder",
    "ColBERT",
    "HubRanker",
    "InterCircle",
    "KeyB",
    "KeyBPARADE",
    "LateInteraction",
    "MaxP",
    "Objective",
    "PassageVectors",
    "QueryVectors",
    "Readout",
    "SentenceEncoder",
    "Sequences",
    "Socialformer",
    "SparseTransformer",
    "VanillaBERT",
    "WholeDocument",
    "bare_query_sequences",
    "circle_sequences",
    "complete_edges",
    "masked_attention",
    "max_similarity",
    "passage_sequences",
    "query_sequences",
    "segment_attention",
]
