"""Sphinx configuration: ``sphinx-build docs build/docs`` after ``pip install ".[docs]"``."""

from importlib.metadata import version as package_version

project = "skdp"
author = "The skdp developers"
version = release = package_version("skdp")

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autosummary", "sphinx.ext.viewcode"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autosummary_generate = True
numpydoc_show_class_members = False
html_theme = "pydata_sphinx_theme"
html_title = "skdp"
