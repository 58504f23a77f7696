"""Documents that BERT has read once: their vectors are written, kept in a folder, and ranked by."""
