"""The layers: imports point down only, and importing is cheap."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
from scipy.sparse.csgraph import connected_components

import skdp

PACKAGE = Path(skdp.__file__).parent

# What each layer may import of the others, from below to above. A layer may always import itself.
_LAYERS = """\
exceptions:
base.parameters:
base.scikit_learn:
base.pipelines: base.scikit_learn
running: exceptions
threads:
accounting: exceptions base.parameters
losses: base.parameters
mechanisms: base.parameters threads accounting
tables: exceptions base.parameters running threads
data: exceptions tables
solvers: base.parameters threads losses tables
models: base.parameters threads losses tables solvers
plans: base.parameters accounting mechanisms tables solvers models
budget: exceptions base.parameters base.pipelines base.scikit_learn running accounting
    mechanisms
reporting: exceptions base.parameters base.scikit_learn running accounting tables
fitting: exceptions base.parameters base.pipelines running accounting mechanisms tables budget
    reporting
estimators: base.parameters base.scikit_learn running accounting losses mechanisms tables models
    plans reporting fitting
preprocessing: exceptions base.parameters base.pipelines base.scikit_learn running threads
    accounting mechanisms tables plans fitting
model_selection: exceptions base.parameters base.pipelines base.scikit_learn running accounting
    mechanisms tables budget reporting fitting estimators
statistics: base.parameters accounting mechanisms tables budget fitting preprocessing
metrics: exceptions base.parameters base.pipelines base.scikit_learn running accounting
    mechanisms tables plans budget reporting fitting estimators statistics
inference: exceptions base.parameters base.scikit_learn running accounting mechanisms tables solvers
    plans reporting fitting estimators metrics
inspection: base.parameters base.scikit_learn plans reporting preprocessing
datasets: base.parameters preprocessing
testing: exceptions base.parameters base.pipelines accounting mechanisms reporting
audit: base.parameters base.pipelines base.scikit_learn running accounting mechanisms tables
    budget reporting fitting
ledger_commands: exceptions accounting budget
cli: exceptions budget ledger_commands
__init__: exceptions accounting losses mechanisms data budget reporting estimators preprocessing
    model_selection statistics metrics inference inspection datasets testing audit
"""
MAY_IMPORT = {
    layer: set(names.split())
    for layer, _, names in (line.partition(":") for line in re.split(r"\n(?! )", _LAYERS.strip()))
}
SCIKIT_LEARN_LAYERS = {
    *("base.pipelines", "base.scikit_learn", "running", "tables", "budget", "reporting", "fitting"),
    *("estimators", "preprocessing", "model_selection", "metrics", "inference"),
    *("inspection", "datasets", "testing", "audit"),
}
NUMBA_LAYERS = {"losses", "solvers", "mechanisms", "tables"}


def modules():
    return sorted(PACKAGE.rglob("*.py"))


def dotted(path):
    """Return the name by which a file is imported."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {dotted(path): path for path in modules()}


def module_of(name):
    """Return the module that an import of a name from skdp loads."""
    while name not in FILES:
        name = name.rpartition(".")[0]
    return name


def packages_of(module):
    """Return the packages that a module lies in, itself included if it is one."""
    parts = module.split(".")
    names = (".".join(parts[:end]) for end in range(1, len(parts) + 1))
    return {name for name in names if FILES[name].name == "__init__.py"}


def loaded_by(module):
    """Return the modules of skdp that a module names in any import statement.

    Imports inside functions and under TYPE_CHECKING count. So do the `__init__` of packages that
    the import runs, but not those of packages that the module lies in itself: they run already,
    and to import a name from one is a circle by the statement itself.
    """
    targets = {module_of(name) for name, _ in imports(FILES[module]) if name.startswith("skdp.")}
    inits = {package for target in targets for package in packages_of(target)}
    return (targets | (inits - packages_of(module))) - {module}


def circles():
    """Return the sets of two or more modules that reach each other by imports."""
    names = sorted(FILES)
    loaded = map(loaded_by, names)
    reaches = np.array([[name in reached for name in names] for reached in loaded])
    count, label = connected_components(reaches, connection="strong")
    found = [
        {name for name, own in zip(names, label, strict=True) if own == group}
        for group in range(count)
    ]
    return [circle for circle in found if len(circle) > 1]


def attributes_of_modules(path):
    """Yield the dotted names that a file reaches through the modules it imports."""
    tree, known = parse(path), {}
    for node in ast.walk(tree):
        for alias in getattr(node, "names", []) if isinstance(node, ast.Import) else []:
            known[alias.asname or "skdp"] = alias.name if alias.asname else "skdp"
        for alias in node.names if isinstance(node, ast.ImportFrom) else []:
            known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        text = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
        start, _, rest = text.partition(".")
        if rest and known.get(start) in FILES:
            yield f"{known[start]}.{rest}"


def layer_of(path):
    return layer_named(dotted(path).split(".")[1:] or ["__init__"])


def layer_named(parts):
    """Return the layer of a name in skdp; rooms of `base` are layers of their own."""
    return ".".join(parts[:2]) if parts[0] == "base" else parts[0]


@cache
def parse(path):
    return ast.parse(path.read_text())


def imports(path):
    """Yield (module, imported at module level) for all imports of a file."""
    tree = parse(path)
    top = set(map(id, tree.body))
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            yield name, id(node) in top


def test_imports_point_down():
    for path in modules():
        check_layer(path)
    below = set()
    for layer, others in MAY_IMPORT.items():
        assert others <= below, f"{layer} stands too low"
        below.add(layer)


def check_layer(path):
    layer = layer_of(path)
    for name, at_top in imports(path):
        parts = name.split(".")
        if parts[0] == "skdp" and (other := layer_named(parts[1:])) != layer:
            assert other in MAY_IMPORT[layer], f"{layer} must not import {name}"
        if parts[0] in ("sklearn", "skl2onnx"):
            assert layer in SCIKIT_LEARN_LAYERS, name
            assert not any(part.startswith("_") for part in parts), f"private module {name}"
        if parts[0] == "numba":
            assert layer in NUMBA_LAYERS, f"{layer} must not import numba"
        extras = {"matplotlib", "rich", "pandas", "dask", "yaml", "polars", "sqlalchemy", "psycopg"}
        extras |= {"pyarrow"}
        assert parts[0] not in extras or not at_top


def test_an_underscore_means_this_folder_only():
    for module in FILES:
        check_underscores(module)


def check_underscores(module):
    """A private module serves its own folder, a private name its own module."""
    path = FILES[module]
    folder = module if path.name == "__init__.py" else module.rpartition(".")[0]
    named = [name for name, _ in imports(path)] + list(attributes_of_modules(path))
    for name in named:
        if name.startswith("skdp."):
            target = module_of(name)
            steps = target.split(".")
            private = [j for j, step in enumerate(steps) if step.startswith("_")]
            assert all(".".join(steps[:j]) == folder for j in private), f"{name} is private"
            held = name.removeprefix(target).split(".")[1:2]
            assert target == module or not any(
                part.startswith("_") and not part.endswith("__") for part in held
            ), f"{name} is private"


def test_no_module_imports_in_a_circle():
    assert circles() == []


def test_circles_and_private_names_are_seen(tmp_path):
    text = "from skdp import accounting as a\nimport skdp.tables.inputs\n"
    text += "a._x\nskdp.tables.inputs._y.z\n"
    (tmp_path / "m.py").write_text(text)
    seen = set(attributes_of_modules(tmp_path / "m.py"))
    assert {"skdp.accounting._x", "skdp.tables.inputs._y"} <= seen
    assert "skdp.budget" in loaded_by("skdp.cli")
    assert "skdp.estimators" not in loaded_by("skdp.estimators._base")


def test_every_layer_is_known():
    assert {layer_of(path) for path in modules()} - {"base"} == set(MAY_IMPORT)


def test_modules_and_functions_stay_short():
    for path in modules():
        check_lengths(path)


def check_lengths(path):
    assert len(path.read_text().splitlines()) <= 450, path
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.FunctionDef):
            body = node.body
            if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
                body = body[1:]
            length = (body[-1].end_lineno - body[0].lineno + 1) if body else 0
            assert length <= 60, f"{path}: {node.name} has {length} lines"


def test_imports_reach_everything_and_load_little():
    """A bare one loads nothing, all of them no extras, and none reads the sources for a digest."""
    code = (
        "import sys, skdp\n"
        "print(*[m for m in ('sklearn', 'scipy', 'numpy') if m in sys.modules])\n"
        "skdp.preprocessing.TableSchema, skdp.OperaSVC\n"
        "assert {'budget', 'DPSGDClassifier'} <= set(dir(skdp)) and not hasattr(skdp, 'unknown')\n"
        "from skdp import *\n"
        "assert OperaSVC is skdp.estimators.OperaSVC\n"
        "import skdp.accounting, skdp.mechanisms, skdp.budget, skdp.reporting, "
        "skdp.preprocessing, skdp.losses, skdp.solvers, skdp.testing, skdp.model_selection, "
        "skdp.data, skdp.datasets, skdp.audit, skdp.statistics, skdp.metrics, "
        "skdp.inspection, skdp.inference\n"
        "from skdp.accounting import records\n"
        "assert records.code_digest.cache_info().currsize == 0\n"
        "print(*[m for m in ('numba', 'llvmlite', 'matplotlib', 'dp_accounting', 'mpmath', 'yaml')"
        " if m in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert found == []


def test_accounting_loads_neither_scikit_learn_nor_numba():
    code = (
        "import sys, skdp.accounting\n"
        "print(*[m for m in ('sklearn', 'numba', 'scipy.stats') if m in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert found == []
