"""Everything that experiments/ does is a table of runs.

A **row** is a line of a table: a recipe, with options as one would type them to run.py. A **run** is a row on one task
(a collection, its queries and candidates) with one seed. It is finished or it is not; it is found by its identity, all
that its result depends on; and it is locked by itself, so that several processes can take different runs of one folder.
A **table** is some runs and declared columns. The commands differ in which runs they name, and in nothing else.

A run passes through five files:

    <command>.py -> plan: rows and runs, what one depends on
                 -> execute: one after the other here, or elsewhere by a launcher of Hydra;
                             a run is loaded (task), put together (recipe), trained, re-ranked, measured (outcome)
                 -> store: finished runs (unfinished: what is there of the others, locks)
                 -> report: columns, significance, Markdown, LaTeX, CSV
"""

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.plugins import Plugins
from hydra.plugins.search_path_plugin import SearchPathPlugin


class Recipes(SearchPathPlugin):
    """Lets all commands find the recipes, which come with the package."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Look there after conf/."""
        search_path.append("socialgraph", "pkg://socialgraph.recipes")


Plugins.instance().register(Recipes)
