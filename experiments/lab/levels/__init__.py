"""How circles are judged before anything is trained: by what they hold (evidence), and by how they read (reading)."""
