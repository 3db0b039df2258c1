"""Sphinx configuration; ``docs/developing.md`` says how to build the site."""

import inspect
import re
import types
from importlib.metadata import metadata
from importlib.metadata import version as package_version
from pathlib import Path

from sphinx.util.inspect import stringify_signature

project = "skdp"
author = "The skdp developers"
version = release = package_version("skdp")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_templates"]
templates_path = ["_templates"]
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_dmath_double_inline = True
myst_heading_anchors = 3
autosummary_generate = True
autodoc_typehints = "none"  # they stand beside the parameters
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
copybutton_exclude = ".linenos, .gp, .go"  # prompts and output

# ``-D plot_gallery=0`` shows the scripts without running them.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "ignore_pattern": r"^(?!plot_)",  # the README runs quickstart.py
    "backreferences_dir": "generated/uses",
    "doc_module": ("skdp",),
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = f"skdp {version}"
html_search_scorer = str(Path(__file__).with_name("search_order.js"))
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
# Pages above all sections have no section to show on the left: they get the whole site.
html_sidebars = {name: ["site-nav"] for name in ("index", "search", "genindex")}
repository = next(
    link.split(", ")[1]
    for link in metadata("skdp").get_all("Project-URL")
    if link.startswith("Repository")
)
html_theme_options = {
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "icon_links": [{"name": "Repository", "url": repository, "icon": "fa-solid fa-code-branch"}],
}


def skip_members_of_others(app, what, name, obj, skip, options):
    """Leave out what classes have from ``str`` or ``Exception``, and scikit-learn's routing."""
    inherited = (types.BuiltinFunctionType, types.MethodDescriptorType, types.GetSetDescriptorType)
    routing = str(getattr(obj, "__module__", "")).startswith("sklearn.utils")
    return True if routing or isinstance(obj, inherited) else None


def show_init(app, what, name, obj, options, signature, returns):
    """Show the parameters of ``__init__`` where ``__new__`` takes anything."""
    if what == "class" and (signature or "").startswith("(*_"):
        own = inspect.signature(obj)
        return stringify_signature(own, show_annotation=False, show_return_annotation=False), None


def link_docstrings(app, what, name, obj, options, lines):
    """Make links of pages that docstrings name, and words of references into other manuals."""
    text = re.sub(r"``docs/([\w/]+)\.md``", r":doc:`/\1`", "\n".join(lines))
    if str(getattr(obj, "__module__", "")).startswith("sklearn"):
        text = re.sub(r":(?:ref|term):`([^`<]*[^`<\s])(?:\s*<[^`]*>)?`", r"*\1*", text)
    lines[:] = text.split("\n")


def setup(app):
    """Connect them."""
    app.connect("autodoc-skip-member", skip_members_of_others)
    app.connect("autodoc-process-signature", show_init)
    app.connect("autodoc-process-docstring", link_docstrings)
