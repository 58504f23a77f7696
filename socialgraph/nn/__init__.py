"""What they say: attention, the BERT convolution, intra- and inter-circle layers, readouts, models."""

from socialgraph.nn.attention import BACKENDS, complete_edges, segment_attention
from socialgraph.nn.bert_conv import BertConv
from socialgraph.nn.bert_ranker import BertRanker, Objective
from socialgraph.nn.embedding import BertEmbedding
from socialgraph.nn.inter_circle import InterCircle
from socialgraph.nn.parade import PARADE
from socialgraph.nn.readout import Readout
from socialgraph.nn.sequences import Sequences, circle_sequences
from socialgraph.nn.socialformer import Socialformer

__all__ = [
    "BACKENDS",
    "PARADE",
    "BertConv",
    "BertEmbedding",
    "BertRanker",
    "InterCircle",
    "Objective",
    "Readout",
    "Sequences",
    "Socialformer",
    "circle_sequences",
    "complete_edges",
    "segment_attention",
]
