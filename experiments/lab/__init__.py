"""What the commands of experiments/ share.

A **row** is a line of a table: a recipe, with options as one would type them to run.py. A **run** is a row with a seed.
A finished run is two files in the folder of its table, ``<row>.<seed>.run.gz`` and ``<row>.<seed>.json``; the JSON says
what it depends on, so a run is finished or is executed again. Each run has a lock of its own: the same command in
several shells takes different runs.

    run.py, compare.py -> config: dataclasses, the schema of conf/
                       -> rows: what a row's result depends on
                       -> task: collection, queries, candidates
                       -> execute: a row put together, trained, re-ranked and measured
                       -> results: the files of finished runs
                       -> report: a DataFrame; Markdown, LaTeX and CSV
"""

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.plugins import Plugins
from hydra.plugins.search_path_plugin import SearchPathPlugin

from lab.config import register


class Recipes(SearchPathPlugin):
    """Lets all commands find the recipes, which come with the package."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Look there after conf/."""
        search_path.append("socialgraph", "pkg://socialgraph.recipes")


Plugins.instance().register(Recipes)
register()
