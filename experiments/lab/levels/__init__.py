"""How a partition is judged before anything is trained: by what its circles hold, and by how they read."""
