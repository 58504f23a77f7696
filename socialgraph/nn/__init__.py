"""What they say: attention, the BERT convolution, intra- and inter-circle layers, readouts, models."""

from socialgraph.nn.attention import masked_attention, segment_attention
from socialgraph.nn.bert_conv import BertConv, BertEmbedding
from socialgraph.nn.bert_ranker import BertRanker
from socialgraph.nn.hub_ranker import HubRanker, Objective
from socialgraph.nn.icli import ICLI
from socialgraph.nn.idcm import IDCM
from socialgraph.nn.inter_circle import InterCircle
from socialgraph.nn.keyb import KeyB, KeyBPARADE
from socialgraph.nn.late_interaction import ColBERT, LateInteraction
from socialgraph.nn.maxp import MaxP, VanillaBERT
from socialgraph.nn.parade import PARADE
from socialgraph.nn.readout import Readout
from socialgraph.nn.sentence_encoder import SentenceEncoder
from socialgraph.nn.sequences import Sequences, circle_sequences
from socialgraph.nn.socialformer import Socialformer
from socialgraph.nn.sparse_transformer import SparseTransformer
from socialgraph.nn.whole_document import WholeDocument

__all__ = [
    "ICLI",
    "IDCM",
    "PARADE",
    "BertConv",
    "BertEmbedding",
    "BertRanker",
    "ColBERT",
    "HubRanker",
    "InterCircle",
    "KeyB",
    "KeyBPARADE",
    "LateInteraction",
    "MaxP",
    "Objective",
    "Readout",
    "SentenceEncoder",
    "Sequences",
    "Socialformer",
    "SparseTransformer",
    "VanillaBERT",
    "WholeDocument",
    "circle_sequences",
    "masked_attention",
    "segment_attention",
]
