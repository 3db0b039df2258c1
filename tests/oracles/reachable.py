"""What users can reach: exported names, their public methods, and the classes these return.

``python tests/oracles/reachable.py [FOLDER ...]`` lists docstrings with sections on all else.
"""

import ast
import importlib
import inspect
import re
import sys
from pathlib import Path

import skdp

PACKAGE = Path(skdp.__file__).parent
PUBLIC = (
    *("", ".accounting", ".accounting.distributions", ".mechanisms"),
    *(".budget", ".model_selection", ".preprocessing", ".reporting", ".testing"),
    *(".data", ".datasets", ".exceptions", ".audit", ".statistics", ".metrics", ".inspection"),
    ".inference",
)


# What is exported to those who extend the library with losses, models and solvers.
EXTENDING = (".losses", ".models", ".solvers")


def exported(packages=PUBLIC + EXTENDING):
    """Yield the objects of public packages: of `__all__`, or all without an underscore."""
    for name in packages:
        module = importlib.import_module(f"skdp{name}")
        own = [key for key in vars(module) if not key.startswith("_")]
        for key in getattr(module, "__all__", own):
            value = getattr(module, key)
            if getattr(value, "__module__", "").startswith("skdp"):
                yield value


def named_in(annotation, module):
    """Yield the classes of skdp that an annotation names."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    for name in re.findall(r"\w+", text):
        found = getattr(sys.modules[module], name, None)
        if inspect.isclass(found) and found.__module__.startswith("skdp"):
            yield found


def public_parts(cls):
    """Yield what a user can call, read or catch of a class, wherever it is defined."""
    for base in cls.__mro__:
        if base.__module__.startswith("skdp"):
            yield base
            for name, value in vars(base).items():
                if not name.startswith("_"):
                    value = getattr(value, "__func__", getattr(value, "fget", value))
                    yield inspect.unwrap(value) if callable(value) else value
            for name, annotation in inspect.get_annotations(base).items():
                if not name.startswith("_"):
                    yield from named_in(annotation, base.__module__)


def reachable():
    """Return the (module, qualified name) of everything that users can reach."""
    found, waiting = set(), list(exported())
    while waiting:
        thing = waiting.pop()
        thing = inspect.unwrap(thing) if inspect.isfunction(thing) else thing
        key = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
        if None in key or not key[0].startswith("skdp") or key in found:
            continue
        found.add(key)
        if inspect.isclass(thing):
            waiting += public_parts(thing)
        elif inspect.isfunction(thing):
            waiting += named_in(inspect.get_annotations(thing).get("return", ""), key[0])
    return found


def with_sections(folder):
    """Yield (module, qualified name, node) of docstrings with numpydoc sections in a folder."""
    start = PACKAGE / folder
    for path in sorted(start.rglob("*.py")) if start.is_dir() else [start.with_suffix(".py")]:
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        module = module.removesuffix(".__init__")
        waiting = [("", ast.parse(path.read_text()))]
        while waiting:
            prefix, parent = waiting.pop()
            for node in ast.iter_child_nodes(parent):
                name = prefix
                if isinstance(node, ast.ClassDef | ast.FunctionDef):
                    name = f"{prefix}{node.name}"
                    if re.search(r"^\w[\w ]*\n-+$", ast.get_docstring(node) or "", re.MULTILINE):
                        yield module, name, node
                    name += "." if isinstance(node, ast.ClassDef) else ".<locals>."
                waiting.append((name, node))


if __name__ == "__main__":
    seen = reachable()
    for folder in sys.argv[1:] or ["."]:
        for module, name, node in with_sections(folder):
            if (module, name) not in seen:
                print(f"{module}:{node.lineno} {name} {len(node.body[0].value.value.splitlines())}")
