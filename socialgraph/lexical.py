"""What is used of bm25s, imported so that it leaves the GPU alone.

Where JAX is installed bm25s starts it, only to sort, and JAX takes three quarters of a GPU's memory when it starts. So
bm25s is told that there is no JAX; whoever has imported either before keeps what he has.
"""

import sys

if "jax" in sys.modules:
    import bm25s
else:
    sys.modules["jax"] = None  # type: ignore[assignment]  # an import of it fails, as where it is not installed
    try:
        import bm25s
    finally:
        del sys.modules["jax"]
from bm25s.stopwords import STOPWORDS_EN_PLUS
from bm25s.tokenization import Tokenized, Tokenizer

__all__ = ["STOPWORDS_EN_PLUS", "Tokenized", "Tokenizer", "bm25s"]
